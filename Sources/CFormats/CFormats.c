#include "CFormats.h"

struct ini_input {
  const char *next;
  size_t left;
  int line;
  cformats_ini_handler handler;
  void *user;
};

// Gives libinih the next line of the text. libinih reads one line with each call, so the number of calls is the line
// number.
static char *read_line(char *buffer, int size, void *stream) {
  struct ini_input *input = stream;
  if (input->left == 0) return NULL;
  size_t length = 0;
  while (length < input->left && length + 1 < (size_t)size) {
    buffer[length] = input->next[length];
    if (buffer[length++] == '\n') break;
  }
  buffer[length] = 0;
  input->next += length;
  input->left -= length;
  input->line++;
  return buffer;
}

static int handle(void *user, const char *section, const char *name, const char *value) {
  struct ini_input *input = user;
  return input->handler(input->user, section, name, value, input->line);
}

int cformats_parse_ini(const char *text, size_t length, cformats_ini_handler handler, void *user) {
  struct ini_input input = {text, length, 0, handler, user};
  ini_max_line = CFORMATS_INI_LINE_MAX + 3;
  ini_allow_multiline = false;
  ini_allow_inline_comments = false;
  ini_stop_on_first_error = true;
  return ini_parse_stream(read_line, &input, handle, &input);
}
