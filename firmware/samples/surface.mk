# Sources of the MCP surface, which need neither an operating system nor a libc.
# Paths begin at firmware/.
MCP_SURFACE_SRCS := samples/json_scan.c samples/text_out.c samples/mcp_surface.c samples/mcp_pump.c
