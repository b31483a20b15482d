/* SPDX-License-Identifier: Apache-2.0 */
// A model as a handler on the GPU: gateway in, inference, gateway out, in one captured graph. docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_AI_DECODER_SERVICE_H
#define CUDAQ_QEC_REALTIME_AI_DECODER_SERVICE_H

#include "cudaq/qec/realtime/inference_engine.h"
#include "cudaq/qec/realtime/pipeline.h"

#include <memory>

namespace cudaq::qec::realtime::experimental {

/// Owns engine, tensors and graph. The first input gets the request's payload, the first output is the answer; other tensors
/// have memory, too. A payload of another size than the input is answered BAD_ARG_LEN. By one thread at a time.
class CUDAQ_QEC_REALTIME_API ai_decoder_service {
public:
  /// device_mailbox_slot: device address of the word that has the request's frame when the graph is launched.
  /// Throws std::invalid_argument: no engine or device, or a model without input or output.
  ai_decoder_service(std::unique_ptr<inference_engine> engine, std::shared_ptr<service_device> device,
                     void **device_mailbox_slot);
  virtual ~ai_decoder_service();
  ai_decoder_service(const ai_decoder_service &) = delete;
  ai_decoder_service &operator=(const ai_decoder_service &) = delete;

  /// The graph as a handler of GRAPH_LAUNCH that a scheduler on the GPU launches: from the next capture_graph(true) on it goes
  /// by this GraphIOContext instead of the mailbox, the same that is named for its entry (CUDAQ_GRAPH_IO_FORWARDED). Device
  /// memory, zeroed, which must outlive the graph. nullptr: the mailbox again. Throws std::logic_error on a predecoder service.
  void set_graph_io(const cudaq::realtime::GraphIOContext *graph_io_dev);
  /// Bytes of the slots that the mailbox leads to, header included, for the next capture_graph: an answer that does not fit is
  /// RESULT_TOO_LARGE. 0, which it is at first: answers fit, the caller has seen to that. With set_graph_io the context says it.
  void set_slot_size(std::size_t bytes) { queue_.slot_bytes = bytes; }
  /// Throws what the capture refuses. Again: the graph is replaced. The model runs once, on whatever its tensors hold; the
  /// mailbox, the GraphIOContext and the queue are neither read nor written. No graph of this service may run.
  void capture_graph(bool device_launch = false);
  /// nullptr before capture_graph.
  cudaGraphExec_t get_executable_graph() const { return graph_; }

  struct tensor_binding {
    std::string name;
    void *d_buffer = nullptr;
    std::size_t size_bytes = 0;
    bool is_input = false;
  };
  using TensorBinding = tensor_binding; ///< the seeds' name
  /// In the model's order.
  const std::vector<tensor_binding> &bindings() const { return bindings_; }
  /// Throws std::out_of_range.
  const tensor_binding &binding(const std::string &name) const;
  std::size_t get_input_size() const { return queue_.input_bytes; }
  std::size_t get_output_size() const { return queue_.output_bytes; }
  const inference_engine &engine() const { return *engine_; }

protected:
  service_device &device() { return *device_; }
  service_queue queue_; ///< of the graph that is captured next

private:
  void bind_tensors();
  void free_memory() noexcept;
  cudaError_t enqueue(const service_queue &queue, cudaStream_t stream);

  std::unique_ptr<inference_engine> engine_;
  std::shared_ptr<service_device> device_;
  std::vector<tensor_binding> bindings_;
  service_device::shared_memory no_request_; ///< a mailbox without a frame
  cudaGraphExec_t graph_ = nullptr;
};

} // namespace cudaq::qec::realtime::experimental

namespace cudaq::qec {
using AIDecoderService = realtime::experimental::ai_decoder_service;
} // namespace cudaq::qec

#endif
