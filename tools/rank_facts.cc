// What ranks must have in common.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "rank_flags.h"
#include "trainer/base/crc32c.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "trainer/base/threads.h"
#include "trainer/config/prototxt.h"
#include "trainer/config/resolved.h"
#include "trainer/parallel/agreement.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> part(1 << 20);
  uint32_t hash = 0;
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    hash = Crc32c(part.data(), static_cast<size_t>(file.gcount()), hash);
  }
  return Join("trainer " TRAINER_VERSION ", checksum ", std::hex, hash);
}

// Bytes of a file, or of the files of a database that hold data.
std::string SizeOf(const std::string& path) {
  std::error_code error;
  uintmax_t bytes = 0;
  if (!fs::is_directory(path, error)) {
    bytes = fs::file_size(path, error);
    return error ? "cannot be read" : Join(bytes, " bytes");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename();
    const bool holds_data = name == "data.mdb" || name.ends_with(".ldb") || name.ends_with(".sst");
    if (holds_data) bytes += entry.file_size(error);
  }
  return Join(bytes, " bytes");
}

// A line for each file that a layer of the training net reads.
std::string Data(const SolverSpec& spec) {
  std::string lines;
  for (const LayerSpec& layer : FilterLayers(*spec.train.net, spec.train.state)) {
    std::vector<const FieldDescriptor*> fields;
    const caffe::LayerParameter& proto = layer.proto();
    proto.GetReflection()->ListFields(proto, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      const Message& param = proto.GetReflection()->GetMessage(proto, field);
      const FieldDescriptor* const source = param.GetDescriptor()->FindFieldByName("source");
      if (source == nullptr || !param.GetReflection()->HasField(param, source)) continue;
      const std::string path = param.GetReflection()->GetString(param, source);
      lines += Join(path, ": ", SizeOf(ResolvePath(path, layer.Where().file)), "\n");
    }
  }
  return lines;
}

std::string Texts(const SolverSpec& spec) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ResolvedSolver(spec), &text);
  return text;
}

}  // namespace

void RequireEqualRanks(World& world, const SolverSpec& spec, const Device& device,
                       const GpuOptions& gpu) {
  RequireAgreement(
      world.group(), world.names(),
      {{"the program", Program()},
       {"the solver and its nets", Texts(spec)},
       {"the data", Data(spec)},
       {"the number of threads", Join(AvailableThreads())},
       {device.kind() == DeviceKind::kCpu ? "the processor" : "the GPU", device.Describe()},
       {"--tf32", gpu.tf32 ? "--tf32" : "--notf32"},
       {"--deterministic", gpu.deterministic ? "--deterministic" : "--nodeterministic"}});
}

}  // namespace trainer
