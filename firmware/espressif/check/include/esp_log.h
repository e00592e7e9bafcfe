/* Only what the component uses, for checking types: see espressif/check/README.md. */
#ifndef FAKE_ESP_LOG_H
#define FAKE_ESP_LOG_H

void fake_log(const char *tag, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define ESP_LOGI(tag, format, ...) fake_log(tag, format __VA_OPT__(, ) __VA_ARGS__)
#define ESP_LOGW(tag, format, ...) fake_log(tag, format __VA_OPT__(, ) __VA_ARGS__)

#endif
