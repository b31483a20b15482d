/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair on the kernel's soft-RoCE, for the programs that play a peer. C11 and C++20. A call that fails ends the
 * program. */
#ifndef CUDAQ_UNITTESTS_VERBS_PAIR_H
#define CUDAQ_UNITTESTS_VERBS_PAIR_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(holds)                                                                                                   \
  do {                                                                                                                 \
    if (!(holds)) {                                                                                                    \
      printf("FAILED: %s: %s\n", #holds, strerror(errno));                                                             \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

struct verbs_pair {
  struct ibv_context *device;
  struct ibv_pd *domain;
  struct ibv_cq *completions;
  struct ibv_mr *memory;
  struct ibv_qp *pair;
  char *buffer;
  uint8_t gid_index;
};

/* The number of the GID of an IPv4 address, ::ffff:a.b.c.d. NULL: of any. Adapters have one for each version of RoCE:
 * the last one is that of version 2. */
static inline uint8_t verbs_gid_index(struct ibv_context *device, const char *address) {
  union ibv_gid wanted, gid;
  int found = -1;
  memset(&wanted, 0, sizeof(wanted));
  if (address != NULL)
    CHECK(inet_pton(AF_INET, address, wanted.raw + 12) == 1);
  for (int i = 0; i < 64 && ibv_query_gid(device, 1, i, &gid) == 0; ++i)
    if (gid.raw[10] == 0xFF && gid.raw[11] == 0xFF &&
        (address == NULL || memcmp(gid.raw + 12, wanted.raw + 12, 4) == 0))
      found = i;
  CHECK(found >= 0);
  return (uint8_t)found;
}

/* Memory of `bytes` is registered; `depth` sends and receives may be posted. */
static inline struct verbs_pair verbs_open(size_t bytes, uint32_t depth, enum ibv_qp_type type, const char *address) {
  struct verbs_pair c;
  int devices = 0;
  struct ibv_device **const list = ibv_get_device_list(&devices);
  CHECK(list != NULL && devices > 0);
  CHECK((c.device = ibv_open_device(list[0])) != NULL);
  CHECK((c.domain = ibv_alloc_pd(c.device)) != NULL);
  CHECK((c.buffer = (char *)aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)) != NULL);
  memset(c.buffer, 0, bytes);
  CHECK((c.memory = ibv_reg_mr(c.domain, c.buffer, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
  CHECK((c.completions = ibv_create_cq(c.device, (int)(2 * depth), NULL, NULL, 0)) != NULL);
  struct ibv_qp_init_attr wanted;
  memset(&wanted, 0, sizeof(wanted));
  wanted.send_cq = wanted.recv_cq = c.completions;
  wanted.cap.max_send_wr = wanted.cap.max_recv_wr = depth;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.qp_type = type;
  CHECK((c.pair = ibv_create_qp(c.domain, &wanted)) != NULL);
  c.gid_index = verbs_gid_index(c.device, address);
  struct ibv_qp_attr a;
  memset(&a, 0, sizeof(a));
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  CHECK(ibv_modify_qp(c.pair, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  return c;
}

/* Can receive and send from now on. `psn`: of the first packet that is sent. */
static inline void verbs_connect(const struct verbs_pair *c, uint32_t mtu, const char *server, uint32_t server_qp,
                                 uint32_t psn) {
  struct ibv_qp_attr a;
  memset(&a, 0, sizeof(a));
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = mtu == 256    ? IBV_MTU_256
               : mtu == 512  ? IBV_MTU_512
               : mtu == 1024 ? IBV_MTU_1024
               : mtu == 2048 ? IBV_MTU_2048
                             : IBV_MTU_4096;
  a.dest_qp_num = server_qp;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.sgid_index = c->gid_index;
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.grh.traffic_class = 0x20;
  a.ah_attr.grh.dgid.raw[10] = a.ah_attr.grh.dgid.raw[11] = 0xFF;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 1;
  CHECK(inet_pton(AF_INET, server, a.ah_attr.grh.dgid.raw + 12) == 1);
  const int reliable = c->pair->qp_type == IBV_QPT_RC;
  CHECK(ibv_modify_qp(c->pair, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0);
  memset(&a, 0, sizeof(a));
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = psn;
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  a.max_rd_atomic = 1;
  CHECK(ibv_modify_qp(
            c->pair, &a,
            IBV_QP_STATE | IBV_QP_SQ_PSN |
                (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0);
}

/* A SEND of the other side goes to the buffer from `at` on; `id` is that of its completion. */
static inline void verbs_post_receive(const struct verbs_pair *c, uint32_t at, uint32_t length, uint64_t id) {
  struct ibv_sge part = {(uintptr_t)(c->buffer + at), length, c->memory->lkey};
  struct ibv_recv_wr request, *bad;
  memset(&request, 0, sizeof(request));
  request.wr_id = id;
  request.sg_list = &part;
  request.num_sge = 1;
  CHECK(ibv_post_recv(c->pair, &request, &bad) == 0);
}

/* `address` and `rkey`: for the opcodes of writes. */
static inline void verbs_post_send(const struct verbs_pair *c, enum ibv_wr_opcode opcode, uint32_t from,
                                   uint32_t length, uint64_t address, uint32_t rkey, uint32_t immediate) {
  struct ibv_sge part = {(uintptr_t)(c->buffer + from), length, c->memory->lkey};
  struct ibv_send_wr request, *bad;
  memset(&request, 0, sizeof(request));
  request.sg_list = &part;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = rkey;
  CHECK(ibv_post_send(c->pair, &request, &bad) == 0);
}

#endif
