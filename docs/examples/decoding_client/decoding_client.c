/* SPDX-License-Identifier: Apache-2.0 */
/* A control system in C: shots to the decoding server over UDP, in two requests each, and their corrections. The client
 * library repeats what is lost or refused as BUSY, and knows whether the server was restarted.
 *   decoding_client ADDRESS PORT DECODER SLOT_SIZE SHOTS */
#include <cudaq/qec/realtime/decoding_client.h>

#include <stdio.h>
#include <stdlib.h>

static const uint64_t limit_ns = CUDAQ_QEC_REPEAT_SECONDS * 1000000000ull;
static cudaq_qec_client_t *client;

/* 0, or 1 after a text. */
static int failed(const char *what, cudaq_status_t status, int32_t of_server) {
  if (status != CUDAQ_OK)
    fprintf(stderr, "%s: %s\n", what, cudaq_qec_client_error());
  else if (of_server != CUDAQ_QEC_SERVER_OK)
    fprintf(stderr, "%s: status %d, %s\n", what, (int)of_server, cudaq_qec_server_status_string(of_server));
  return status != CUDAQ_OK || of_server != CUDAQ_QEC_SERVER_OK;
}

static int call(const char *what, uint32_t function, const void *head, size_t head_bytes, const void *bits,
                size_t bytes, cudaq_qec_client_answer_t *answer) {
  const cudaq_qec_client_request_t request = {function, 0, head, head_bytes, bits, bytes, limit_ns};
  const cudaq_status_t status = cudaq_qec_client_call(client, &request, answer);
  return failed(what, status, status == CUDAQ_OK ? answer->status : 0);
}

static int enqueue(uint64_t decoder, uint64_t counter, const unsigned char *bits, uint64_t count) {
  const cudaq_qec_enqueue_syndromes_t head = {decoder, counter, 0, count};
  cudaq_qec_client_answer_t answer;
  return call("enqueue_syndromes", CUDAQ_QEC_ENQUEUE_SYNDROMES, &head, sizeof head, bits, (size_t)(count + 7) / 8,
              &answer);
}

/* The bits of a real system come from its measurements. Here detector `shot` fires. */
static int play(uint64_t decoder, const cudaq_qec_decoder_description_t *model, long shots) {
  const uint64_t half = model->shot_bits / 2;
  uint64_t counter = 1; /* not 0: then a restart of the server after the first request is seen, too */
  for (long shot = 0; shot < shots; ++shot) {
    unsigned char bits[2][CUDAQ_QEC_MAX_ENQUEUED_BITS / 16] = {{0}};
    const uint64_t fires = (uint64_t)shot % model->shot_bits, at = fires < half ? fires : fires - half;
    bits[fires < half ? 0 : 1][at / 8] = (unsigned char)(1u << at % 8);
    const cudaq_qec_get_corrections_t wanted = {decoder, model->observables, 1};
    cudaq_qec_client_answer_t answer;
    if (enqueue(decoder, counter++, bits[0], half) || enqueue(decoder, counter++, bits[1], model->shot_bits - half) ||
        call("get_corrections", CUDAQ_QEC_GET_CORRECTIONS, &wanted, sizeof wanted, NULL, 0, &answer))
      return 1;
    if (answer.result_bytes != (model->observables + 7) / 8) {
      fprintf(stderr, "get_corrections: %llu bytes, not one bit for each observable\n",
              (unsigned long long)answer.result_bytes);
      return 1;
    }
    printf("shot %ld: detector %llu, corrections", shot, (unsigned long long)fires);
    for (uint64_t byte = 0; byte < answer.result_bytes; ++byte)
      printf(" %02x", answer.result[byte]);
    printf("\n");
  }
  return 0;
}

static int run(uint64_t decoder, long shots) {
  cudaq_qec_decoder_description_t model;
  const cudaq_qec_reset_decoder_t reset = {decoder};
  cudaq_qec_client_answer_t answer;
  int32_t of_server = 0;
  const cudaq_status_t status = cudaq_qec_client_describe(client, decoder, limit_ns, &model, &of_server);
  if (failed("describe_decoder", status, of_server))
    return 1;
  if (model.shot_bits < 2 || model.shot_bits > CUDAQ_QEC_MAX_ENQUEUED_BITS / 2)
    return fprintf(stderr, "decoder %llu has no shots of 2 bits or more\n", (unsigned long long)decoder), 1;
  if (call("reset_decoder", CUDAQ_QEC_RESET_DECODER, &reset, sizeof reset, NULL, 0, &answer))
    return 1;
  const int result = play(decoder, &model, shots);
  int restarted = 0;
  if (cudaq_qec_client_was_restarted(client, decoder, limit_ns, &restarted) == CUDAQ_OK && restarted)
    return fprintf(stderr, "the server was restarted\n"), 1;
  return result;
}

int main(int argc, char **argv) {
  if (argc != 6)
    return fprintf(stderr, "usage: decoding_client ADDRESS PORT DECODER SLOT_SIZE SHOTS\n"), 2;
  const cudaq_qec_client_options_t options = {.struct_size = sizeof options,
                                              .slot_size = (uint32_t)strtoul(argv[4], NULL, 10)};
  if (cudaq_qec_client_open_udp(&client, argv[1], (uint16_t)atoi(argv[2]), &options) != CUDAQ_OK)
    return fprintf(stderr, "decoding_client: %s\n", cudaq_qec_client_error()), 2;
  const int result = run(strtoull(argv[3], NULL, 10), atol(argv[5]));
  cudaq_qec_client_counts_t counts;
  if (cudaq_qec_client_get_counts(client, &counts) == CUDAQ_OK)
    fprintf(stderr, "%llu requests were sent again\n", (unsigned long long)counts.repeated);
  cudaq_qec_client_close(client);
  return result;
}
