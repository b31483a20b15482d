/* SPDX-License-Identifier: Apache-2.0 */
/* Prints each UDP datagram to port 4791 that arrives, from the IPv4 header on, in hexadecimal, until it is killed. */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

int main(void) {
  const int raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
  unsigned char packet[9000];
  for (;;) {
    const ssize_t size = recv(raw, packet, sizeof(packet), 0);
    if (size < 0)
      return 1;
    if (size < 28 || (packet[22] << 8 | packet[23]) != 4791)
      continue;
    printf("PACKET ");
    for (ssize_t i = 0; i < size; ++i)
      printf("%02x", packet[i]);
    printf("\n");
    fflush(stdout);
  }
}
