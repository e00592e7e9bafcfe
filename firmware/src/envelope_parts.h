/* What surrounds name and payload of an envelope; shared by envelope.c and mux.c. */
#ifndef MCPLINK_ENVELOPE_PARTS_H
#define MCPLINK_ENVELOPE_PARTS_H

#include <stddef.h>

#define ENVELOPE_HEAD "{\"provider\":\""
#define ENVELOPE_MIDDLE "\",\"payload\":"
#define ENVELOPE_TAIL "}"

/* Spells one byte of a JSON string; how many bytes that takes. */
size_t mcplink_priv_escape(char c, char out[6]);

#endif
