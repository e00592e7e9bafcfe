/* IP addresses written as text. */
#ifndef MCPLINK_IP_LITERAL_H
#define MCPLINK_IP_LITERAL_H

#include <stddef.h>
#include <stdint.h>

/* mcplink_ip_literal reads an IPv4 address in dotted form, or an IPv6 address
 * without brackets and zone. It returns the number of bytes, 4 or 16, or 0 when
 * text is neither. */
size_t mcplink_ip_literal(const char *text, uint8_t address[16]);

#endif
