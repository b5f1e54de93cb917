#include "trainer/image/image_name.h"

#include <algorithm>
#include <string_view>

#include "trainer/base/text/lower_case.h"

namespace trainer {

bool IsImageName(const std::string& name) {
  static constexpr std::string_view kEndings[] = {".jpg",  ".jpeg", ".png", ".tif",
                                                  ".tiff", ".pgm",  ".ppm"};
  const std::string lower = LowerCase(name);
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return lower.ends_with(end); });
}

}  // namespace trainer
