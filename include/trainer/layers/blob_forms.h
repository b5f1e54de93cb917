#pragma once
// Converts weights files of Caffe's forks that store a layer's blobs in a different form.

#include <functional>
#include <string>

#include "trainer/config/layer_spec.h"

namespace trainer {

// Converts the blobs that a file stores for a layer into the blobs of the layer `spec`, in
// `adapted`. Returns false if `stored` needs no conversion; the caller checks the number and shapes
// of its blobs. Throws kData naming `file`.
using BlobAdapter = std::function<bool(const LayerSpec& spec, const caffe::LayerParameter& stored,
                                       const std::string& file, caffe::LayerParameter* adapted)>;

// Calls the adapter registered for the type of `spec`; false for types without one.
bool AdaptBlobs(const LayerSpec& spec, const caffe::LayerParameter& stored, const std::string& file,
                caffe::LayerParameter* adapted);

// const RegisterBlobForms kForms("BatchNorm", Adapt);
struct RegisterBlobForms {
  RegisterBlobForms(const char* type, BlobAdapter adapter);
};

}  // namespace trainer
