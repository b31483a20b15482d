// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/fake_graph_workers.h"

namespace cudaq::qec::realtime::test {

fake_graph_workers *fake_graph_workers::the_one = nullptr;

extern "C" {
cudaq_status_t cudaq_dispatcher_set_host_workers(cudaq_dispatcher_t *dispatcher, const cudaq_host_worker_t *workers,
                                                 std::size_t num_workers) {
  const cudaq::realtime::test::spared here;
  return fake_graph_workers::the_one->set(dispatcher, workers, num_workers);
}
cudaq_status_t cudaq_host_worker_job(cudaq_dispatcher_t *, int worker_id, cudaq_host_job_t *out_job) {
  const cudaq::realtime::test::spared here;
  return fake_graph_workers::the_one->job(worker_id, out_job);
}
cudaq_status_t cudaq_host_release_worker(cudaq_dispatcher_t *, int worker_id) {
  const cudaq::realtime::test::spared here;
  return fake_graph_workers::the_one->release(worker_id);
}
}

} // namespace cudaq::qec::realtime::test
