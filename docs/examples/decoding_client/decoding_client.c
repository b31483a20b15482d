/* SPDX-License-Identifier: Apache-2.0 */
/* A control system in C: shots to the decoding server over UDP, in two requests each, and their corrections. An answer
 * may be lost: the request is then sent again, equal in all its bytes, and the server executes it once. After
 * BUSY of the server it is sent as another request: no attempt of the refused one was or will be executed.
 *   decoding_client ADDRESS PORT DECODER SLOT_SIZE SHOTS
 * The numbers of this host must be little-endian, as those of the wire are. */
#define _POSIX_C_SOURCE 200809L
#include <cudaq/qec/realtime/decoding_server_wire.h>
#include <cudaq/realtime/daemon/dispatcher/rpc_wire_format.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kLargest = 65536, kRepeatMs = 20, kMaxRefusals = 50, kNoAnswer = -1, kNoServer = -2 };

static int link_fd;
static size_t slot_size;
static uint32_t next_id = 1;
static unsigned long repeats;
static unsigned char result[kLargest]; /* of the last answer */
static size_t result_bytes;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* An answer to this request within the time between two attempts. */
static int receive(uint32_t id, uint64_t until, int *status) {
  unsigned char frame[kLargest];
  cudaq_rpc_response_t header;
  for (uint64_t now; (now = now_ns()) < until;) {
    struct pollfd fd = {link_fd, POLLIN, 0};
    if (poll(&fd, 1, (int)((until - now) / 1000000) + 1) <= 0)
      return 0;
    const ssize_t n = recv(link_fd, frame, sizeof frame, 0);
    if (n < 0)
      return errno == ECONNREFUSED ? kNoServer : 0;
    if ((size_t)n < sizeof header)
      continue;
    memcpy(&header, frame, sizeof header);
    if (header.magic != CUDAQ_RPC_MAGIC_RESPONSE || header.request_id != id ||
        header.result_len > (size_t)n - sizeof header)
      continue; /* a late answer to an earlier attempt */
    result_bytes = header.result_len;
    memcpy(result, frame + sizeof header, result_bytes);
    *status = header.status;
    return 1;
  }
  return 0;
}

/* The status of the answer, kNoAnswer or kNoServer. The time of the first attempt is in all attempts: by it the server
 * knows a repeated request. */
static int call(uint32_t function, const void *head, size_t head_bytes, const void *bits, size_t bytes) {
  unsigned char frame[kLargest];
  const uint64_t begin = now_ns();
  cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, function, (uint32_t)(head_bytes + bytes), next_id++, begin};
  const size_t size = sizeof header + head_bytes + bytes;
  if (size > slot_size)
    return CUDAQ_RPC_ERR_BAD_ARG_LEN;
  memcpy(frame, &header, sizeof header);
  memcpy(frame + sizeof header, head, head_bytes);
  if (bytes != 0)
    memcpy(frame + sizeof header + head_bytes, bits, bytes);
  int refusals = 0;
  while (now_ns() - begin < CUDAQ_QEC_REPEAT_SECONDS * 1000000000ull) {
    int status = 0;
    if (send(link_fd, frame, size, 0) < 0 && errno != ECONNREFUSED)
      return kNoAnswer;
    const int got = receive(header.request_id, now_ns() + kRepeatMs * 1000000ull, &status);
    if (got == 1 && status != CUDAQ_QEC_SERVER_BUSY && status != CUDAQ_RPC_ERR_BUSY)
      return status;
    if (got == kNoServer && ++refusals == kMaxRefusals) /* until then the server may just start */
      return kNoServer;
    if (got != 0) { /* no server yet, or a busy one */
      const struct timespec pause = {0, kRepeatMs * 1000000};
      nanosleep(&pause, NULL);
    }
    if (got == 1 && status == CUDAQ_QEC_SERVER_BUSY) { /* not CUDAQ_RPC_ERR_BUSY, which is of this attempt only */
      header.request_id = next_id++;
      header.ptp_timestamp = now_ns();
      memcpy(frame, &header, sizeof header);
    }
    ++repeats;
  }
  return kNoAnswer;
}

static int enqueue(uint64_t decoder, uint64_t counter, const unsigned char *bits, uint64_t count) {
  const cudaq_qec_enqueue_syndromes_t head = {decoder, counter, 0, count};
  return call(CUDAQ_QEC_ENQUEUE_SYNDROMES, &head, sizeof head, bits, (size_t)(count + 7) / 8);
}

static int describe(uint64_t decoder, cudaq_qec_decoder_description_t *out) {
  const cudaq_qec_describe_decoder_t query = {decoder, 1};
  const int status = call(CUDAQ_QEC_DESCRIBE_DECODER, &query, sizeof query, NULL, 0);
  if (status == CUDAQ_QEC_SERVER_OK && result_bytes != sizeof *out)
    return kNoAnswer;
  if (status == CUDAQ_QEC_SERVER_OK)
    memcpy(out, result, sizeof *out);
  return status;
}

static int failed(const char *what, int status) {
  fprintf(stderr, "%s: %s %d\n", what,
          status == kNoServer   ? "no server listens there,"
          : status == kNoAnswer ? "no answer,"
                                : "status",
          status);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 6)
    return fprintf(stderr, "usage: decoding_client ADDRESS PORT DECODER SLOT_SIZE SHOTS\n"), 2;
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
  const uint64_t decoder = strtoull(argv[3], NULL, 10);
  slot_size = strtoull(argv[4], NULL, 10);
  link_fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (link_fd < 0 || slot_size > kLargest || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1 ||
      connect(link_fd, (const struct sockaddr *)&server, sizeof server) != 0)
    return fprintf(stderr, "decoding_client: a wrong address or slot size\n"), 2;

  cudaq_qec_decoder_description_t model, later;
  const cudaq_qec_reset_decoder_t reset = {decoder};
  int status = describe(decoder, &model);
  if (status != CUDAQ_QEC_SERVER_OK)
    return failed("describe_decoder", status);
  if (model.shot_bits < 2 || model.shot_bits > CUDAQ_QEC_MAX_ENQUEUED_BITS / 4)
    return fprintf(stderr, "decoder %llu has no shots of 2 bits or more\n", (unsigned long long)decoder), 1;
  if ((status = call(CUDAQ_QEC_RESET_DECODER, &reset, sizeof reset, NULL, 0)) != CUDAQ_QEC_SERVER_OK)
    return failed("reset_decoder", status);
  const uint64_t half = model.shot_bits / 2;
  uint64_t counter = 1; /* not 0: then a restart of the server after the first request is seen, too */
  for (long shot = 0; shot < atol(argv[5]); ++shot) {
    /* The bits of a real system come from its measurements. Here detector `shot` fires. */
    unsigned char bits[2][kLargest / 2] = {{0}};
    const uint64_t fires = (uint64_t)shot % model.shot_bits, at = fires < half ? fires : fires - half;
    bits[fires < half ? 0 : 1][at / 8] = (unsigned char)(1u << at % 8);
    if ((status = enqueue(decoder, counter++, bits[0], half)) != CUDAQ_QEC_SERVER_OK ||
        (status = enqueue(decoder, counter++, bits[1], model.shot_bits - half)) != CUDAQ_QEC_SERVER_OK)
      return failed("enqueue_syndromes", status);
    const cudaq_qec_get_corrections_t wanted = {decoder, model.observables, 1};
    if ((status = call(CUDAQ_QEC_GET_CORRECTIONS, &wanted, sizeof wanted, NULL, 0)) != CUDAQ_QEC_SERVER_OK)
      return failed("get_corrections", status);
    printf("shot %ld: detector %llu, corrections", shot, (unsigned long long)fires);
    for (size_t byte = 0; byte < result_bytes; ++byte)
      printf(" %02x", result[byte]);
    printf("\n");
  }
  if ((status = describe(decoder, &later)) != CUDAQ_QEC_SERVER_OK)
    return failed("describe_decoder", status);
  if (later.boot_id != model.boot_id)
    return fprintf(stderr, "the server was restarted\n"), 1;
  fprintf(stderr, "%lu requests were sent again\n", repeats);
  close(link_fd);
  return 0;
}
