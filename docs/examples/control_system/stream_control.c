/* SPDX-License-Identifier: Apache-2.0 */
/* A control system for a stream of the decoding server: an experiment with a head, REPETITIONS each CYCLE_US, a tail.
 *   stream_control HOST PORT DECODER REPETITIONS CYCLE_US LIMIT_US       HOST shm: PORT is the name of the server */
#include "control.h"

static cudaq_qec_client_t *client;
static uint64_t decoder, counter = 1;
static cudaq_qec_client_answer_t answer;

/* Until its answer comes: a stream with a gap is worth nothing. Ends the program after any other status than OK. */
static void call(uint32_t function, const void *head, size_t head_bytes, const void *bits, size_t bytes) {
  const cudaq_qec_client_request_t request = {
      function, 0, head, head_bytes, bits, bytes, CUDAQ_QEC_REPEAT_SECONDS * 1000000000ull};
  const char *const error = cudaq_qec_client_call(client, &request, &answer) != CUDAQ_OK ? cudaq_qec_client_error()
                            : answer.status != 0 ? cudaq_qec_server_answer_string(function, answer.status)
                                                 : NULL;
  if (error != NULL) {
    fprintf(stderr, "function 0x%08X: %s\n", (unsigned)function, error);
    exit(1);
  }
}

/* The bits of a real system come from its measurements. Here detector 0 fires if `fires`. */
static void send_bits(uint64_t count, int fires) {
  static uint8_t bits[CUDAQ_QEC_MAX_ENQUEUED_BITS / 8];
  if (count == 0)
    return;
  const cudaq_qec_enqueue_syndromes_t head = {decoder, counter++, 0, count};
  bits[0] = (uint8_t)fires;
  call(CUDAQ_QEC_ENQUEUE_SYNDROMES, &head, sizeof head, bits, (size_t)(count + 7) / 8);
}

/* Rounds that have come, and of them those whose corrections are final. wait_for_round above 0: the answer waits. */
static cudaq_qec_committed_t committed(uint64_t observables, uint64_t wait_for_round) {
  const cudaq_qec_get_committed_t wanted = {decoder, observables, 0, {0}, wait_for_round};
  cudaq_qec_committed_t rounds;
  call(CUDAQ_QEC_GET_COMMITTED, &wanted, sizeof wanted, NULL, 0);
  if (answer.result_bytes != sizeof rounds + (observables + 7) / 8) {
    fprintf(stderr, "get_committed: %llu bytes\n", (unsigned long long)answer.result_bytes);
    exit(1);
  }
  memcpy(&rounds, answer.result, sizeof rounds); /* the corrections follow: a bit for each observable */
  return rounds;
}

int main(int argc, char **argv) {
  if (argc != 7 || strtoull(argv[4], NULL, 10) == 0)
    return fprintf(stderr, "usage: stream_control HOST PORT DECODER REPETITIONS CYCLE_US LIMIT_US\n"), 2;
  const size_t repetitions = strtoull(argv[4], NULL, 10);
  decoder = strtoull(argv[3], NULL, 10);
  client = open_client(argv[1], argv[2], 1);
  if (client == NULL)
    return 1;
  const cudaq_qec_describe_decoder_t about = {decoder, 2}; /* 2: with the parts of a stream */
  cudaq_qec_stream_description_t model = {0};
  call(CUDAQ_QEC_DESCRIBE_DECODER, &about, sizeof about, NULL, 0);
  memcpy(&model, answer.result, answer.result_bytes == sizeof model ? sizeof model : 0);
  const uint64_t detectors = model.decoder.detectors, observables = model.decoder.observables;
  if (answer.result_bytes != sizeof model || observables == 0 || model.decoder.shot_bits != 0 ||
      detectors > CUDAQ_QEC_MAX_ENQUEUED_BITS || model.head_detectors > CUDAQ_QEC_MAX_ENQUEUED_BITS ||
      model.tail_detectors > CUDAQ_QEC_MAX_ENQUEUED_BITS)
    return fprintf(stderr, "decoder %llu is no stream with observables\n", (unsigned long long)decoder), 1;
  const cudaq_qec_reset_decoder_t reset = {decoder};
  call(CUDAQ_QEC_RESET_DECODER, &reset, sizeof reset, NULL, 0);
  send_bits(model.head_detectors, 0);
  const uint64_t head_rounds = committed(observables, 0).pushed_rounds; /* the description has only detectors */
  uint64_t final = 0, pushed_rounds = head_rounds;
  pace_t pace = begin_pace(repetitions, argv[5], argv[6]);
  if (pace.ns == NULL)
    return 1;
  for (size_t k = 0; k < repetitions; ++k) {
    wait_until(due_ns(&pace, k));
    send_bits(detectors, k % 16 == 15);
    const cudaq_qec_committed_t rounds = committed(observables, 0);
    final = rounds.committed_through;
    pushed_rounds = rounds.pushed_rounds;
    record(&pace, k);
  }
  printf("head: %llu detectors, %llu rounds; repetition: %llu, %llu; tail: %llu detectors\n",
         (unsigned long long)model.head_detectors, (unsigned long long)head_rounds, (unsigned long long)detectors,
         (unsigned long long)((pushed_rounds - head_rounds) / repetitions), (unsigned long long)model.tail_detectors);
  printf("final before the tail %llu rounds\n", (unsigned long long) final);
  const cudaq_qec_begin_tail_t tail = {decoder, counter++};
  call(CUDAQ_QEC_BEGIN_TAIL, &tail, sizeof tail, NULL, 0);
  const uint64_t last_bits = now_ns();
  send_bits(model.tail_detectors, 0);
  final = committed(observables, UINT64_MAX).committed_through; /* at the end of the tail it is answered */
  printf("final %llu rounds, %.1f us after the last bits; correction 0x%02x\n", (unsigned long long) final,
         (double)(now_ns() - last_bits) / 1e3, answer.result[sizeof(cudaq_qec_committed_t)]);
  print_latencies(&pace);
  cudaq_qec_client_close(client);
  free(pace.ns);
  return 0;
}
