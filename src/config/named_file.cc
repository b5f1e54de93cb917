#include "trainer/config/named_file.h"

#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

std::string FindNamedFile(const LayerSpec& layer, std::string_view param, std::string_view field,
                          const std::string& path) {
  const std::string& file = layer.Where().file;
  const std::string found = ResolvePath(path, file);
  // If a file cannot be accessed for another reason, such as missing permissions, its reader
  // reports the error.
  if (!IsMissing(found)) return found;
  ThrowAtField(layer, param, field,
               Error(ErrorCode::kNoInput,
                     Join(field, " '", path, "' does not exist; tried ", PathsTried(path, file))));
}

void ThrowAtField(const LayerSpec& layer, std::string_view param, std::string_view field,
                  const Error& error) {
  throw LayerError(error.code(), layer.WhereIn(param, field),
                   Join("layer '", layer.name(), "' (", layer.type(), "): ", error.what()));
}

}  // namespace trainer
