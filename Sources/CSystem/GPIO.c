#include "CSystem.h"

int csystem_gpio_open(const char *directory, uint32_t number, struct gpiochip_info *info) {
  char path[128];
  if (snprintf(path, sizeof path, "%s/gpiochip%u", directory, number) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int chip = open(path, O_RDWR | O_CLOEXEC);
  if (chip < 0 || ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, info) == 0) return chip;
  int code = errno;
  close(chip);
  errno = code;
  return -1;
}

bool csystem_gpio_is(const struct gpiochip_info *info, const char *chip) {
  return strcmp(info->label, chip) == 0 || strcmp(info->name, chip) == 0;
}

int csystem_gpio_line(int chip, uint32_t number, struct gpio_v2_line_info *info) {
  memset(info, 0, sizeof *info);
  info->offset = number;
  return ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, info);
}

int csystem_gpio_request(int chip, uint32_t number, uint64_t flags, uint32_t debounce) {
  struct gpio_v2_line_request request = {.offsets = {number}, .num_lines = 1, .consumer = "causeway"};
  request.config.flags = flags;
  if (debounce > 0) {
    request.config.num_attrs = 1;
    request.config.attrs[0].mask = 1;
    request.config.attrs[0].attr.id = GPIO_V2_LINE_ATTR_ID_DEBOUNCE;
    request.config.attrs[0].attr.debounce_period_us = debounce;
  }
  if (ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request) != 0) return -1;
  // The kernel sets O_CLOEXEC on the new descriptor, but not O_NONBLOCK.
  if (fcntl(request.fd, F_SETFL, O_NONBLOCK) != 0) {
    int code = errno;
    close(request.fd);
    errno = code;
    return -1;
  }
  return request.fd;
}

int csystem_gpio_set(int line, bool is_active) {
  struct gpio_v2_line_values values = {.mask = 1, .bits = is_active};
  return ioctl(line, GPIO_V2_LINE_SET_VALUES_IOCTL, &values);
}
