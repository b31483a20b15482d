/* SPDX-License-Identifier: Apache-2.0 */
/* A requester on the kernel's soft-RoCE, by verbs: soft_roce_requester MTU SLOT_SIZE ROUNDS SERVER. It writes the
 * number of its queue pair to the file /queue_pair and waits for the file /go. Then it sends requests of the function
 * "increment" to a roce provider at the IPv4 address SERVER, in each of four ways, and checks each answer. */
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include "unittests/transport/roce/soft_roce/verbs_pair.h"

enum { BUFFER_BYTES = 1 << 16, ANSWER_AT = 1 << 15, PAGES = 4, SERVER_QP = 0x11, SERVER_RKEY = 0x1234 };

/* Sends the frame. Returns the number of completions that follow, without that of the answer. */
static int post_request(const struct verbs_pair *c, uint32_t round, uint32_t frame, uint32_t slot_size) {
  const uint32_t page = round % PAGES;
  const uint64_t address = (uint64_t)page * slot_size;
  switch (round % 4) {
  case 0:
    verbs_post_send(c, IBV_WR_RDMA_WRITE_WITH_IMM, 0, frame, address, SERVER_RKEY, page);
    return 1;
  case 1:
    verbs_post_send(c, IBV_WR_SEND, 0, frame, 0, 0, 0);
    return 1;
  case 2:
    verbs_post_send(c, IBV_WR_SEND_WITH_IMM, 0, frame, 0, 0, 7);
    return 1;
  default: { /* in two parts, the last one with the immediate of a sensor bridge */
    const uint32_t first = frame / 10 * 9;
    verbs_post_send(c, IBV_WR_RDMA_WRITE, 0, first, address, SERVER_RKEY, 0);
    verbs_post_send(c, IBV_WR_RDMA_WRITE_WITH_IMM, first, frame - first, address + first, SERVER_RKEY,
                    page | round << 12);
    return 2;
  }
  }
}

static int await(const struct verbs_pair *c, int completions) {
  const time_t end = time(NULL) + 10;
  while (completions > 0) {
    struct ibv_wc done;
    if (ibv_poll_cq(c->completions, 1, &done) > 0) {
      if (done.status != IBV_WC_SUCCESS)
        return 0;
      --completions;
    } else if (time(NULL) > end) {
      return 0;
    }
  }
  return 1;
}

static int answered(const struct verbs_pair *c, uint32_t round, uint32_t length) {
  cudaq_rpc_response_t header;
  const char *const answer = c->buffer + ANSWER_AT;
  memcpy(&header, answer, sizeof(header));
  int right = header.magic == CUDAQ_RPC_MAGIC_RESPONSE && header.status == 0 && header.request_id == round &&
              header.result_len == length;
  for (uint32_t i = 0; i < length; ++i)
    right = right && answer[sizeof(header) + i] == (char)(i * 3 + round + 1);
  return right;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: soft_roce_requester MTU SLOT_SIZE ROUNDS SERVER\n");
    return 2;
  }
  const uint32_t slot_size = (uint32_t)atoi(argv[2]), rounds = (uint32_t)atoi(argv[3]);
  const struct verbs_pair c = verbs_open(BUFFER_BYTES, 8, IBV_QPT_UC, NULL);
  FILE *const number = fopen("/queue_pair", "w");
  CHECK(number != NULL);
  fprintf(number, "%u", c.pair->qp_num);
  fclose(number);
  while (access("/go", F_OK) != 0)
    usleep(10000);
  verbs_connect(&c, (uint32_t)atoi(argv[1]), argv[4], SERVER_QP, 0xFFFFF0); /* the number wraps */
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t length = round * 97 % (slot_size - CUDAQ_RPC_HEADER_SIZE);
    const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, 0x3812E73E /* increment */, length, round, 0};
    memcpy(c.buffer, &header, sizeof(header));
    for (uint32_t i = 0; i < length; ++i)
      c.buffer[sizeof(header) + i] = (char)(i * 3 + round);
    memset(c.buffer + ANSWER_AT, 0, slot_size);
    verbs_post_receive(&c, ANSWER_AT, slot_size, 0);
    const int completions = post_request(&c, round, (uint32_t)sizeof(header) + length, slot_size);
    if (!await(&c, completions + 1) || !answered(&c, round, length)) {
      printf("FAILED in round %u of %u\n", round, rounds);
      return 1;
    }
  }
  printf("GOOD %u rounds, MTU %s, slots of %u bytes\n", rounds, argv[1], slot_size);
  return 0;
}
