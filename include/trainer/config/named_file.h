#pragma once
// Files that a layer names in one of its fields: a database, a list, a mean.

#include <string>
#include <string_view>

#include "trainer/config/layer_error.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// The path as ResolvePath finds it. Throws kNoInput at the field's line, with the layer and every
// path that was looked for, when nothing is there.
std::string FindNamedFile(const LayerSpec& layer, std::string_view param, std::string_view field,
                          const std::string& path);

// Throws `error` as one of a layer's field: at its line, with the layer's name.
[[noreturn]] void ThrowAtField(const LayerSpec& layer, std::string_view param,
                               std::string_view field, const Error& error);

// Gives read(found path), with the errors of both functions above.
template <class Read>
auto ReadNamedFile(const LayerSpec& layer, std::string_view param, std::string_view field,
                   const std::string& path, Read&& read) {
  const std::string found = FindNamedFile(layer, param, field, path);
  try {
    return read(found);
  } catch (const LayerError&) {
    throw;
  } catch (const Error& error) {
    ThrowAtField(layer, param, field, error);
  }
}

}  // namespace trainer
