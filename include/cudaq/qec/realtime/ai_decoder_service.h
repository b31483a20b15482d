/* SPDX-License-Identifier: Apache-2.0 */
// A model as a handler on the GPU: gateway in, inference and gateway out in one captured graph. See docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_AI_DECODER_SERVICE_H
#define CUDAQ_QEC_REALTIME_AI_DECODER_SERVICE_H

#include "cudaq/qec/realtime/inference_engine.h"
#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <memory>

namespace cudaq::qec::realtime::experimental {

/// Owns engine, tensors and graph. The request's payload is copied to the first input, the first output becomes the
/// answer; all other tensors have memory too. A payload whose size is not that of the input is answered BAD_ARG_LEN.
/// Use a service from one thread at a time.
class CUDAQ_QEC_REALTIME_API ai_decoder_service {
public:
  /// device_mailbox_slot: device address of the word that holds the address of the request's frame when the graph is
  /// launched. Throws std::invalid_argument without an engine or a device, or for a model without an input or an
  /// output.
  ai_decoder_service(std::unique_ptr<inference_engine> engine, std::shared_ptr<service_device> device,
                     void **device_mailbox_slot);
  /// The same with the engine that gpu::open_model makes of a model file, on the current device. A program that uses
  /// this constructor links cudaq::qec-realtime-gpu. Throws std::runtime_error if the model cannot be opened.
  ai_decoder_service(const std::string &model_path, void **device_mailbox_slot,
                     const std::string &engine_save_path = "");
  virtual ~ai_decoder_service();
  ai_decoder_service(const ai_decoder_service &) = delete;
  ai_decoder_service &operator=(const ai_decoder_service &) = delete;

  /// For a graph that a scheduler on the GPU launches (a GRAPH_LAUNCH handler). From the next capture_graph(true) on
  /// the graph uses this GraphIOContext instead of the mailbox; register the same context for the table entry
  /// (CUDAQ_GRAPH_IO_FORWARDED). It is zeroed device memory and must outlive the graph. nullptr: the mailbox again.
  /// Throws std::logic_error on a predecoder service.
  void set_graph_io(const cudaq::realtime::GraphIOContext *graph_io_dev);
  /// Bytes of the slots that the mailbox points to, header included, for the next capture_graph: a larger answer
  /// becomes RESULT_TOO_LARGE. Default 0: no check, the caller guarantees that answers fit. With set_graph_io the
  /// size comes from the context.
  void set_slot_size(std::size_t bytes) { queue_.slot_bytes = bytes; }
  /// Captures the graph, and replaces an earlier one. Runs the model once, on whatever its tensors hold; does not
  /// read or write the mailbox, the GraphIOContext or the queue. No graph of this service may run. Throws the error
  /// of the capture.
  void capture_graph(bool device_launch = false);
  /// The specification's form, for a graph that the host launches. The capture has a stream of its own; `stream` is not
  /// used, and the graph may be launched on any stream.
  void capture_graph(cudaStream_t stream, bool device_launch = false) {
    static_cast<void>(stream);
    capture_graph(device_launch);
  }
  /// Another pointer would become device_launch.
  template <class NoStream>
  void capture_graph(NoStream *, bool = false) = delete;
  /// nullptr before capture_graph.
  cudaGraphExec_t get_executable_graph() const { return graph_; }

  struct tensor_binding {
    std::string name;
    void *d_buffer = nullptr;
    std::size_t size_bytes = 0;
    bool is_input = false;
  };
  using TensorBinding = tensor_binding; ///< name in the specification
  /// In the order of the model's tensors.
  const std::vector<tensor_binding> &bindings() const { return bindings_; }
  /// Throws std::out_of_range if no tensor has this name.
  const tensor_binding &binding(const std::string &name) const;
  /// Device address of the first input; a name in the existing system. The graph itself copies the payload there.
  void *get_trt_input_ptr() const { return queue_.input; }
  std::size_t get_input_size() const { return queue_.input_bytes; }
  std::size_t get_output_size() const { return queue_.output_bytes; }
  const inference_engine &engine() const { return *engine_; }

protected:
  service_device &device() { return *device_; }
  service_queue queue_; ///< for the graph that is captured next

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
