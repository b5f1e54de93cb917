#pragma once
// Files that a layer names in one of its fields: a database, a list, a mean.

#include <string>
#include <string_view>

#include "trainer/config/layer_error.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// Returns the path that ResolvePath finds. If nothing exists there, throws kNoInput at the field's
// line, with the layer and every path that was tried.
std::string FindNamedFile(const LayerSpec& layer, std::string_view param, std::string_view field,
                          const std::string& path);

// Throws `error` as an error of a layer's field: at its line, with the layer's name.
[[noreturn]] void ThrowAtField(const LayerSpec& layer, std::string_view param,
                               std::string_view field, const Error& error);

// Returns read(found path), with the errors of both functions above.
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
