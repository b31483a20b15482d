/* SPDX-License-Identifier: Apache-2.0 */
/* A decoding server inside a program: a repetition code of distance 3, one shot, its correction. With a dispatcher,
 * cudaq_qec_decoding_server_serve lets a ring or a transport bring the requests. */
#include <cudaq/qec/realtime/decoding_server.h>

#include <stdio.h>

#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return printf("%s\n", cudaq_qec_decoding_server_error()), 1

/* Data qubit 1 lies between the two detectors; an error of data qubit 0 flips the observable. */
static const char config[] = "decoders:\n"
                             "  - id: 7\n"
                             "    type: lookup\n"
                             "    dem: |\n"
                             "      error(0.01) D0 L0\n"
                             "      error(0.01) D0 D1\n"
                             "      error(0.01) D1\n";

int main(void) {
  cudaq_qec_decoding_server_t *server;
  TRY(cudaq_qec_decoding_server_create(&server, config, NULL));

  const uint8_t events = 0x1; /* detector 0 */
  uint8_t observables = 0;
  const cudaq_qec_decoding_server_request_t shot = {.function_id = CUDAQ_QEC_DECODE,
                                                    .payload = &events,
                                                    .payload_bytes = sizeof events,
                                                    .result = &observables,
                                                    .result_bytes = sizeof observables};
  int32_t status;
  TRY(cudaq_qec_decoding_server_call(server, &shot, &status, NULL));
  printf("status %d, observables 0x%02x\n", (int)status, observables);

  cudaq_qec_decoding_server_counts_t counts = {.struct_size = sizeof counts};
  TRY(cudaq_qec_decoding_server_get_counts(server, 7, &counts));
  printf("decoder 7: %llu requests, %llu shots\n", (unsigned long long)counts.requests,
         (unsigned long long)counts.shots);

  TRY(cudaq_qec_decoding_server_drain(server, 0, 1000000000)); /* at most a second */
  cudaq_qec_decoding_server_destroy(server);
  return status == CUDAQ_QEC_SERVER_OK && observables == 1 && counts.shots == 1 ? 0 : 1;
}
