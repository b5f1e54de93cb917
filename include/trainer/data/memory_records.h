#pragma once
// Images without a header, in one file or from the standard input: what MemoryData reads.

#include <memory>

#include "trainer/config/layer_spec.h"
#include "trainer/data/prefetcher.h"

namespace trainer {

// Whether a MemoryData layer names a source.
bool HasMemoryRecords(const LayerSpec& layer);

// The source that memory_data_param and transform_param ask for. All images are read here and stay
// in memory; they come in their order, from the start again after the last. Without a source the
// prefetcher has shapes and nothing to read.
//
// Throws kConfig at the field's line: a size out of range, labels without a source, the standard
// input with several ranks; kNoInput, kNoPermission, kIo of the files; kData for a number of bytes
// that is no multiple of an image's, no images, another number of labels than of images, and a
// label that is no whole number.
std::unique_ptr<Prefetcher> MakeMemoryPrefetcher(const LayerSpec& layer, const ReadingEnv& env);

}  // namespace trainer
