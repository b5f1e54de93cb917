#include "data/numbered_path.h"

#include "trainer/base/text/text.h"

namespace trainer {

std::string NumberedPath(const std::string& path, int number) {
  const size_t dot = path.rfind('.');
  const bool has_end = dot != std::string::npos && dot > path.rfind('/') + 1;
  const size_t end = has_end ? dot : path.size();
  return Join(path.substr(0, end), "_", number, path.substr(end));
}

}  // namespace trainer
