#include "predict/blob_writer.h"

#include <algorithm>

#include "predict/array_blob_writer.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

// Writes each blob to its own database, a Datum per row.
class DatabaseBlobs final : public BlobWriter {
 public:
  DatabaseBlobs(const std::string& backend, const std::vector<std::string>& blobs,
                const std::vector<std::string>& outs)
      : blobs_(blobs) {
    constexpr int kDigits = 10;
    for (const std::string& out : outs) {
      databases_.push_back(std::make_unique<DatabaseWriter>(backend, out, kDigits));
    }
  }

  void Add(size_t blob, std::span<const int64_t> dims, std::span<const float> values) override {
    if (dims.size() > 4) {
      throw Error(ErrorCode::kConfig,
                  Join("blob '", EscapeControl(blobs_[blob]), "' has ", dims.size(),
                       " axes, but a database record can have only three after the batch axis: use "
                       "--backend=hdf5"));
    }
    const auto length = [&](size_t axis) {
      return axis < dims.size() ? static_cast<int>(dims[axis]) : 1;
    };
    datum_.set_channels(length(1));
    datum_.set_height(length(2));
    datum_.set_width(length(3));
    const auto rows = static_cast<size_t>(dims[0]);
    for (size_t row = 0; row < rows; ++row) {
      const std::span<const float> part =
          values.subspan(row * values.size() / rows, values.size() / rows);
      datum_.mutable_float_data()->Assign(part.begin(), part.end());
      databases_[blob]->Put(datum_);
    }
  }

  void Finish() override {
    for (const auto& database : databases_) database->Finish();
  }

 private:
  std::vector<std::string> blobs_;
  std::vector<std::unique_ptr<DatabaseWriter>> databases_;
  caffe::Datum datum_;
};

// Writes each blob to its own .npy file.
class NpyBlobs final : public BlobWriter {
 public:
  NpyBlobs(const std::vector<std::string>& blobs, const std::vector<std::string>& outs,
           bool replace) {
    for (size_t i = 0; i < outs.size(); ++i) {
      files_.push_back(MakeArrayBlobWriter({blobs[i]}, outs[i], replace));
    }
  }

  void Add(size_t blob, std::span<const int64_t> dims, std::span<const float> values) override {
    files_[blob]->Add(0, dims, values);
  }
  void Finish() override {
    for (const auto& file : files_) file->Finish();
  }

 private:
  std::vector<std::unique_ptr<BlobWriter>> files_;
};

bool AreNpyFiles(const std::vector<std::string>& outs) {
  return !outs.empty() &&
         std::ranges::all_of(outs, [](const std::string& out) { return out.ends_with(".npy"); });
}

// Whether all blobs go to one file: an HDF5 or an .npz file. The name of an .npz file is enough.
bool IsOneFile(const std::string& backend, const std::vector<std::string>& outs) {
  const bool is_npz = outs.size() == 1 && outs[0].ends_with(".npz");
  return is_npz || (backend == "HDF5" && !AreNpyFiles(outs));
}

// Throws kUsage if an output has the name of a file of another format.
void CheckNames(const std::string& backend, const std::vector<std::string>& outs) {
  for (const std::string& out : outs) {
    const bool names_array = IsHdf5Name(out) || out.ends_with(".npz") || out.ends_with(".npy");
    const bool has_ending = FileNameOf(out).find('.') != std::string::npos;
    if (backend == "HDF5" ? names_array || !has_ending : !names_array) continue;
    throw Error(ErrorCode::kUsage,
                EscapeControl(backend == "HDF5" ? Join("--out=", out,
                                                       ": the name must end in .h5, .hdf5, .npz or "
                                                       ".npy; for a database, give --backend=lmdb")
                                                : Join("--out=", out,
                                                       " is the name of a file, but --backend "
                                                       "writes databases; leave --backend out")));
  }
}

// Throws kUsage if a blob is given twice or the backend needs another number of outputs.
void CheckCounts(const std::string& backend, const std::vector<std::string>& blobs,
                 const std::vector<std::string>& outs) {
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (std::find(blobs.begin(), blobs.begin() + static_cast<std::ptrdiff_t>(i), blobs[i]) ==
        blobs.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;
    }
    throw Error(ErrorCode::kUsage, Join("blob '", EscapeControl(blobs[i]), "' is given twice"));
  }
  const bool is_file = IsOneFile(backend, outs);
  const size_t wanted = is_file ? 1 : blobs.size();
  if (!blobs.empty() && outs.size() == wanted) return;
  const std::string kind = AreNpyFiles(outs) ? "NumPy's .npy format"
                           : is_file         ? "an HDF5 or .npz file"
                                             : backend;
  throw Error(ErrorCode::kUsage,
              Join(blobs.size(), " blobs and ", outs.size(), " outputs: ", kind,
                   is_file ? " holds all blobs: give one output" : " needs one output per blob"));
}

}  // namespace

std::unique_ptr<BlobWriter> MakeBlobWriter(const std::string& backend,
                                           const std::vector<std::string>& blobs,
                                           const std::vector<std::string>& outs, bool replace) {
  CheckNames(backend, outs);
  CheckCounts(backend, blobs, outs);
  if (AreNpyFiles(outs)) return std::make_unique<NpyBlobs>(blobs, outs, replace);
  if (IsOneFile(backend, outs)) return MakeArrayBlobWriter(blobs, outs[0], replace);
  return std::make_unique<DatabaseBlobs>(backend, blobs, outs);
}

}  // namespace trainer
