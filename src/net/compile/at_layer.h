#pragma once

#include <new>
#include <stdexcept>

#include "trainer/config/layer_error.h"
#include "trainer/config/layer_spec.h"

namespace trainer {

// Runs a step of compiling that concerns one layer. Adds the layer and its line to any error,
// because shapes and the backend do not know them.
template <class Part>
auto AtLayer(const LayerSpec& spec, const Part& part) {
  try {
    return part();
  } catch (const LayerError&) {
    throw;
  } catch (const Error& error) {
    spec.FailWith(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    spec.FailWith(ErrorCode::kResource, "planning it needs more memory than available");
  } catch (const std::length_error&) {
    spec.FailWith(ErrorCode::kConfig, "its sizes are too large for any memory");
  }
}

}  // namespace trainer
