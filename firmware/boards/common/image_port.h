/* The port an image was linked with. */
#ifndef IMAGE_PORT_H
#define IMAGE_PORT_H

#include "image_args.h"
#include "mcplink/port.h"

/* Words for the log: "lwip", "uart", "tls+lwip". */
extern const char image_port_name[];

/* image_port_init sets the transport up. Returns NULL, or what is missing. */
const char *image_port_init(const image_args *args, mcplink_port *port);

/* image_port_detail is what the transport itself says about the last failure; ""
 * when nothing. */
const char *image_port_detail(void);

#endif
