// GPIO lines, which a chip's character device provides: version 2 of the interface (Linux 5.10, <linux/gpio.h>).
#pragma once
#include <linux/gpio.h>
#include <stdbool.h>
#include <stdint.h>

/// Opens the device gpiochip<number> in a directory and reads the description of the chip. Returns a descriptor of the
/// device, or -1 with errno set (ENOTTY: the file is not a GPIO chip).
int csystem_gpio_open(const char *_Nonnull directory, uint32_t number, struct gpiochip_info *_Nonnull info);

/// Whether `chip` is the label or the name of the chip.
bool csystem_gpio_is(const struct gpiochip_info *_Nonnull info, const char *_Nonnull chip);

/// Reads the name and the consumer of a line. Returns 0, or -1 with errno set (EINVAL: the chip has no line with this
/// number).
int csystem_gpio_line(int chip, uint32_t number, struct gpio_v2_line_info *_Nonnull info);

/// Requests a line with the consumer name “causeway”. The line stays reserved until the returned descriptor is closed.
/// `flags` are GPIO_V2_LINE_FLAG_…. `debounce` is the debounce period of an input in µs, or 0 for none. An output is
/// inactive at first.
///
/// Returns a descriptor that is non-blocking and closed on exec, or -1 with errno set (EBUSY: the line is in use).
int csystem_gpio_request(int chip, uint32_t number, uint64_t flags, uint32_t debounce);

/// Sets a line that was requested as an output. Returns 0, or -1 with errno set (ENODEV: the chip is gone).
int csystem_gpio_set(int line, bool is_active);

/// Accessors for text members of the kernel's structures, because Swift imports text members as tuples.
static inline const char *_Nonnull csystem_gpio_label(const struct gpiochip_info *_Nonnull info) { return info->label; }
static inline const char *_Nonnull csystem_gpio_name(const struct gpio_v2_line_info *_Nonnull info) { return info->name; }
static inline const char *_Nonnull csystem_gpio_consumer(const struct gpio_v2_line_info *_Nonnull info) { return info->consumer; }
