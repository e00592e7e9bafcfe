/* One TCP client over IPv4 with a static address, in about 20 KB of RAM. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0

#define LWIP_IPV6 0
#define LWIP_UDP 0
#define LWIP_DNS 0
#define LWIP_DHCP 0
#define LWIP_RAW 0
#define LWIP_ICMP 1
#define LWIP_STATS 0
#define IP_REASSEMBLY 0
#define IP_FRAG 0

#define MEM_ALIGNMENT 4
#define MEM_SIZE (8 * 1024)

#define TCP_MSS 1460
#define TCP_WND (4 * TCP_MSS)
#define TCP_SND_BUF (2 * TCP_MSS)
#define TCP_SND_QUEUELEN 8
#define MEMP_NUM_TCP_SEG 12
#define PBUF_POOL_SIZE 8
#define TCP_QUEUE_OOSEQ 0

/* One connection in use, and the ones before it that wait for their last
 * acknowledgement. lwIP drops the oldest of those when it needs room. */
#define MEMP_NUM_TCP_PCB 4
#define MEMP_NUM_TCP_PCB_LISTEN 1

#endif
