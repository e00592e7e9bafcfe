/* Lines on the host's standard output. */
#ifndef LOG_H
#define LOG_H

/* Writes text and more, at most 160 bytes of both, as one line. */
void log_line(const char *text, const char *more);

/* Writes the line "stack used=N", N the bytes of stack ever used. */
void log_stack(void);

#endif
