// Reads a solver's state with its weights: parsing, the link to the weights, every history blob.

#include <string_view>

#include "fuzz/fuzz_target.h"
#include "support/temp_folder.h"
#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/blob.h"

namespace {

// A folder with weights, under the name that the corpus uses.
class StateFolder {
 public:
  StateFolder() {
    caffe::NetParameter net;
    net.add_layer()->set_name("ip");
    trainer::WriteModel(folder_ / "small_iter_2.caffemodel", net);
  }
  std::string Write(std::string_view bytes) const {
    const std::string path = folder_ / "small_iter_2.solverstate";
    trainer::WriteText(path, std::string(bytes));
    return path;
  }

 private:
  trainer::TempFolder folder_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (trainer::IsFuzzedHdf5(data, size)) return 0;
  static const StateFolder folder;
  return trainer::ExpectRefusalOrSuccess([&] {
    const std::string path = folder.Write({reinterpret_cast<const char*>(data), size});
    const trainer::LoadedState loaded = trainer::ReadState(path);
    for (const caffe::BlobProto& blob : loaded.state.history()) {
      trainer::ReadBlob(blob, {path}, "history", trainer::ErrorCode::kBadSnapshot);
    }
  });
}
