/* SPDX-License-Identifier: Apache-2.0 */
/* A requester on the kernel's soft-RoCE, by verbs: soft_roce_requester MTU SLOT_SIZE ROUNDS SERVER. It writes the
 * number of its queue pair to the file /queue_pair and waits for the file /go. Then it sends requests of the function
 * "increment" to a roce provider at the IPv4 address SERVER, in each of four ways, and checks each answer. */
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16, ANSWER_AT = 1 << 15, PAGES = 4, SERVER_QP = 0x11, SERVER_RKEY = 0x1234 };

#define CHECK(holds)                                                                                                   \
  do {                                                                                                                 \
    if (!(holds)) {                                                                                                    \
      perror(#holds);                                                                                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

struct connection {
  struct ibv_context *device;
  struct ibv_cq *completions;
  struct ibv_mr *memory;
  struct ibv_qp *pair;
  char *buffer;
};

static struct connection open_connection(void) {
  struct connection c;
  int devices = 0;
  struct ibv_device **const list = ibv_get_device_list(&devices);
  CHECK(list != NULL && devices > 0);
  CHECK((c.device = ibv_open_device(list[0])) != NULL);
  struct ibv_pd *const domain = ibv_alloc_pd(c.device);
  CHECK(domain != NULL);
  CHECK((c.buffer = aligned_alloc(4096, BUFFER_BYTES)) != NULL);
  CHECK((c.memory = ibv_reg_mr(domain, c.buffer, BUFFER_BYTES, IBV_ACCESS_LOCAL_WRITE)) != NULL);
  CHECK((c.completions = ibv_create_cq(c.device, 16, NULL, NULL, 0)) != NULL);
  struct ibv_qp_init_attr wanted = {.send_cq = c.completions,
                                    .recv_cq = c.completions,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_UC};
  CHECK((c.pair = ibv_create_qp(domain, &wanted)) != NULL);
  return c;
}

/* The index of an address of RoCEv2 over IPv4: ::ffff:a.b.c.d */
static int ipv4_index(const struct connection *c) {
  union ibv_gid gid;
  for (int i = 0; ibv_query_gid(c->device, 1, i, &gid) == 0; ++i)
    if (gid.raw[10] == 0xFF && gid.raw[11] == 0xFF)
      return i;
  CHECK(!"the device has an IPv4 address");
  return -1;
}

static void connect_to(const struct connection *c, int mtu, const char *server) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  CHECK(ibv_modify_qp(c->pair, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  memset(&a, 0, sizeof(a));
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = mtu == 256 ? IBV_MTU_256 : IBV_MTU_1024;
  a.dest_qp_num = SERVER_QP;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.sgid_index = (uint8_t)ipv4_index(c);
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.grh.traffic_class = 0x20;
  a.ah_attr.grh.dgid.raw[10] = a.ah_attr.grh.dgid.raw[11] = 0xFF;
  CHECK(inet_pton(AF_INET, server, a.ah_attr.grh.dgid.raw + 12) == 1);
  CHECK(ibv_modify_qp(c->pair, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) == 0);
  memset(&a, 0, sizeof(a));
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = 0xFFFFF0; /* wraps */
  CHECK(ibv_modify_qp(c->pair, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

static void post_receive(const struct connection *c, uint32_t slot_size) {
  struct ibv_sge part = {(uintptr_t)(c->buffer + ANSWER_AT), slot_size, c->memory->lkey};
  struct ibv_recv_wr request = {.sg_list = &part, .num_sge = 1}, *bad;
  CHECK(ibv_post_recv(c->pair, &request, &bad) == 0);
}

static void post_write(const struct connection *c, uint32_t from, uint32_t length, uint64_t address, int completes,
                       uint32_t immediate) {
  struct ibv_sge part = {(uintptr_t)(c->buffer + from), length, c->memory->lkey};
  struct ibv_send_wr request = {.sg_list = &part, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
  request.opcode = completes ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = SERVER_RKEY;
  CHECK(ibv_post_send(c->pair, &request, &bad) == 0);
}

static void post_send(const struct connection *c, uint32_t length, int with_immediate) {
  struct ibv_sge part = {(uintptr_t)c->buffer, length, c->memory->lkey};
  struct ibv_send_wr request = {.sg_list = &part, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
  request.opcode = with_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  request.imm_data = htonl(7);
  CHECK(ibv_post_send(c->pair, &request, &bad) == 0);
}

/* Sends the frame. Returns the number of completions that follow, without that of the answer. */
static int post_request(const struct connection *c, uint32_t round, uint32_t frame, uint32_t slot_size) {
  const uint32_t page = round % PAGES;
  const uint64_t address = (uint64_t)page * slot_size;
  switch (round % 4) {
  case 0:
    post_write(c, 0, frame, address, 1, page);
    return 1;
  case 1:
    post_send(c, frame, 0);
    return 1;
  case 2:
    post_send(c, frame, 1);
    return 1;
  default: { /* in two parts, the last one with the immediate of a sensor bridge */
    const uint32_t first = frame / 10 * 9;
    post_write(c, 0, first, address, 0, 0);
    post_write(c, first, frame - first, address + first, 1, page | round << 12);
    return 2;
  }
  }
}

static int await(const struct connection *c, int completions) {
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

static int answered(const struct connection *c, uint32_t round, uint32_t length) {
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
  const struct connection c = open_connection();
  FILE *const number = fopen("/queue_pair", "w");
  CHECK(number != NULL);
  fprintf(number, "%u", c.pair->qp_num);
  fclose(number);
  while (access("/go", F_OK) != 0)
    usleep(10000);
  connect_to(&c, atoi(argv[1]), argv[4]);
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t length = round * 97 % (slot_size - CUDAQ_RPC_HEADER_SIZE);
    const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, 0x3812E73E /* increment */, length, round, 0};
    memcpy(c.buffer, &header, sizeof(header));
    for (uint32_t i = 0; i < length; ++i)
      c.buffer[sizeof(header) + i] = (char)(i * 3 + round);
    memset(c.buffer + ANSWER_AT, 0, slot_size);
    post_receive(&c, slot_size);
    const int completions = post_request(&c, round, (uint32_t)sizeof(header) + length, slot_size);
    if (!await(&c, completions + 1) || !answered(&c, round, length)) {
      printf("FAILED in round %u of %u\n", round, rounds);
      return 1;
    }
  }
  printf("GOOD %u rounds, MTU %s, slots of %u bytes\n", rounds, argv[1], slot_size);
  return 0;
}
