#pragma once
// Opens the inputs of data layers, each in source_<type>.cc.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/decoder.h"
#include "trainer/input/input_env.h"
#include "trainer/input/transform.h"
#include "trainer/storage/checksums.h"
#include "trainer/storage/cursor.h"

namespace trainer {

// Returns the options that the run and the layer decide. Only TRAIN nets divide records among
// ranks; a second top needs labels. `param` names the message with the batch size. Throws kConfig
// at the line of batch_size, or of data_param's prefetch or threads, if it is out of range.
BatchQueueOptions QueueOptionsOf(const LayerSpec& layer, std::string_view param,
                                 uint32_t batch_size, const InputEnv& env);

// Throws kConfig at the line of `sampling` in the message `param` for BALANCED outside of TRAIN.
void RequireSampling(const LayerSpec& layer, std::string_view param, caffe::Sampling sampling,
                     caffe::Phase phase);

// The path of a Data layer's set: as written if it exists, else relative to the layer's file.
std::string DatabasePath(const LayerSpec& layer);

// Opens the set that data_param names. Throws as OpenCursor does, at the layer's line.
std::unique_ptr<Cursor> OpenLayersDatabase(const LayerSpec& layer);

// Data. Throws as QueueOptionsOf and OpenLayersDatabase do, and kConfig without a source.
std::unique_ptr<BatchQueue> OpenDatabase(const LayerSpec& layer, const InputEnv& env);

// ImageData: image_data_param and transform_param. The order of each epoch is a function of the key
// and the epoch's number. Throws as QueueOptionsOf, ReadImageList and ReadImageFileOptions do, and
// kConfig at the field's line: no source, rand_skip above the number of images.
std::unique_ptr<BatchQueue> OpenImageList(const LayerSpec& layer, const InputEnv& env);

// WindowData: window_data_param and transform_param. The choice of each window, and of whether it
// is mirrored, is a function of the key and the record's number. Throws as QueueOptionsOf and
// ReadWindowList do, and kConfig at the field's line.
std::unique_ptr<BatchQueue> OpenWindowList(const LayerSpec& layer, const InputEnv& env);

// HDF5Data: hdf5_data_param, with an output for each top. Every file is opened once; rows are read
// when they are needed, never whole files. With shuffle, each epoch has another order of the files,
// and of the rows of each: a function of the key and the epoch's number.
//
// Throws kConfig at the field's line for transform_param, a missing source, or batch_size out of
// range; kNoInput for a list or file that does not exist; kData for an empty list, a dataset that
// is missing or not numeric, datasets of one file with different numbers of rows, files whose rows
// differ in shape, and no rows at all. The error names the line of the list. Restore throws
// kBadSnapshot if the number of rows in the files differs from the run of the snapshot.
std::unique_ptr<BatchQueue> OpenHdf5Rows(const LayerSpec& layer, const InputEnv& env);

// MemoryData: memory_data_param and transform_param; images without a header, in one file or from
// the standard input. All images are read here and stay in memory. The queue returns them in order,
// and starts again after the last. Without a source the queue has shapes and nothing to read.
//
// Throws kConfig at the field's line for a size out of range, labels without a source, or the
// standard input with several ranks; kNoInput, kNoPermission, kIo for the files; kData if the
// file's size is not a multiple of the image size, if there are no images, if the numbers of labels
// and images differ, or if a label is not an integer.
std::unique_ptr<BatchQueue> OpenMemory(const LayerSpec& layer, const InputEnv& env);

struct ShuffleOptions {
  uint64_t window = 0;  // records that are permuted together; 0: as many as fit into memory
  PhiloxKey key;
  bool balanced = false;  // sampling: BALANCED, which reads all labels first and has no window
};

// Reads the Datum records of a database; encoded ones are decoded to the transform's colors. With
// `shuffle` each epoch has another order. `checksums`, if not null, are compared. Throws as
// ReadLabels does if classes are balanced.
RecordSource MakeDatabaseSource(std::unique_ptr<Cursor> cursor, Transform transform,
                                std::unique_ptr<const ChecksumVerifier> checksums = nullptr,
                                const std::optional<ShuffleOptions>& shuffle = {});

}  // namespace trainer
