#pragma once
// Builds tar archives for tests.

#include <cstdio>
#include <string>

namespace trainer {

// Returns a header and the content, padded to whole blocks.
inline std::string TarEntryText(const std::string& name, const std::string& content,
                                char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 8, std::string("0000644\0", 8));
  char size[13];
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(content.size()));
  header.replace(124, 12, std::string(size, 12));
  header.replace(148, 8, 8, ' ');
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 8, std::string(digits, 7) + " ");
  const std::string fill((512 - content.size() % 512) % 512, '\0');
  return header + content + fill;
}

inline std::string TarEnd() { return std::string(1024, '\0'); }

// Returns a picture of one pixel and its label.
inline std::string TarSample(const std::string& key, int pixel, int label) {
  return TarEntryText(key + ".pgm", std::string("P5 1 1 255\n") + static_cast<char>(pixel)) +
         TarEntryText(key + ".cls", std::to_string(label) + "\n");
}

}  // namespace trainer
