#include "trainer/checkpoint/model_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "small_snapshot.h"
#include "support/error_of.h"
#include "support/faulty_ops.h"
#include "support/temp_folder.h"
#include "trainer/base/random/crc32c.h"

namespace trainer {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ModelFileTest, ReadsBackWhatItWrites) {
  const TempFolder folder;
  auto net = SmallNet(5, 100000);
  const FileChecksum seal = WriteModel(folder / "m.caffemodel", net);
  EXPECT_EQ(seal.file_bytes, std::filesystem::file_size(folder / "m.caffemodel"));
  auto read = ReadModel(folder / "m.caffemodel");
  EXPECT_EQ(read.file_bytes(), seal.file_bytes);
  EXPECT_EQ(read.crc32c(), seal.crc32c);
  read.clear_file_bytes();
  read.clear_crc32c();
  EXPECT_TRUE(MessageDifferencer::Equals(read, net));
}

TEST(ModelFileTest, SealsWithTheChecksumOfAllBytesBeforeIt) {
  const TempFolder folder;
  auto net = SmallNet(5);
  const FileChecksum seal = WriteModel(folder / "m.caffemodel", net);
  const std::string bytes = ReadText(folder / "m.caffemodel");
  EXPECT_EQ(Crc32c(bytes.data(), bytes.size() - 7), seal.crc32c);
}

TEST(ModelFileTest, WritesAReadModelAgainWithASealOfItsOwn) {
  const TempFolder folder;
  auto net = SmallNet(5);
  WriteModel(folder / "a.caffemodel", net);
  auto again = ReadModel(folder / "a.caffemodel");
  again.mutable_layer(0)->mutable_blobs(0)->set_data(0, 77);
  WriteModel(folder / "b.caffemodel", again);
  EXPECT_EQ(FirstWeight(ReadModel(folder / "b.caffemodel")), 77);
}

TEST(ModelFileTest, IdentifiesAFileByItsChecksum) {
  const TempFolder folder;
  auto net = SmallNet(5);
  for (const char* name : {"m.caffemodel", "m.caffemodel.h5"}) {
    const FileChecksum written = WriteModel(folder / name, net);
    const FileChecksum found = IdentifyFile(folder / name);
    EXPECT_EQ(found.crc32c, written.crc32c) << name;
    EXPECT_EQ(found.file_bytes, written.file_bytes) << name;
  }
  const FileChecksum other = IdentifyFile(folder.Write("other", "123456789"));
  EXPECT_EQ(other.crc32c, 0xe3069283u);  // the check value of CRC-32C
  EXPECT_EQ(other.file_bytes, 9u);
  EXPECT_EQ(ErrorOf([&] { IdentifyFile(folder / "none"); }).first, ErrorCode::kNoInput);
}

// NetParameter as seen by a program that does not know this project's own fields.
class CaffesNet {
 public:
  CaffesNet() {
    Add(caffe::NetParameter::descriptor()->file());
    const auto* type = pool_.FindMessageTypeByName("caffe.NetParameter");
    message_.reset(factory_.GetPrototype(type)->New());
  }
  google::protobuf::Message& message() { return *message_; }

 private:
  void Add(const google::protobuf::FileDescriptor* file) {
    if (pool_.FindFileByName(file->name()) != nullptr) return;
    for (int i = 0; i < file->dependency_count(); ++i) Add(file->dependency(i));
    google::protobuf::FileDescriptorProto proto;
    file->CopyTo(&proto);
    for (auto& message : *proto.mutable_message_type()) {
      if (message.name() != "NetParameter") continue;
      auto* fields = message.mutable_field();
      for (int i = fields->size() - 1; i >= 0; --i) {
        if (fields->Get(i).number() >= 20000) fields->DeleteSubrange(i, 1);
      }
    }
    ASSERT_NE(pool_.BuildFile(proto), nullptr);
  }

  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_{&pool_};
  std::unique_ptr<google::protobuf::Message> message_;
};

TEST(ModelFileTest, IsReadableForProgramsThatDoNotKnowTheSeal) {
  const TempFolder folder;
  auto net = SmallNet(5);
  WriteModel(folder / "m.caffemodel", net);
  CaffesNet theirs;
  ASSERT_TRUE(theirs.message().ParseFromString(ReadText(folder / "m.caffemodel")));
  const auto* reflection = theirs.message().GetReflection();
  EXPECT_EQ(reflection->GetUnknownFields(theirs.message()).field_count(), 2);
  reflection->MutableUnknownFields(&theirs.message())->Clear();
  EXPECT_EQ(theirs.message().SerializeAsString(), net.SerializeAsString());
}

TEST(ModelFileTest, ReadsAFileWithoutSeal) {
  const TempFolder folder;
  WriteText(folder / "m.caffemodel", SmallNet(5).SerializeAsString());
  EXPECT_EQ(FirstWeight(ReadModel(folder / "m.caffemodel")), 5);
}

TEST(ModelFileTest, ReadsAForeignFileThatEndsLikeASeal) {
  const TempFolder folder;
  auto net = SmallNet(5);
  net.set_crc32c(12345);  // the bytes of this field come last, and the checksum in them is wrong
  WriteText(folder / "m.caffemodel", net.SerializeAsString());
  EXPECT_EQ(FirstWeight(ReadModel(folder / "m.caffemodel")), 5);
}

TEST(ModelFileTest, ReturnsOldLayersAsTheyAreOrRewritten) {
  const TempFolder folder;
  caffe::NetParameter net;
  net.set_name("old");
  net.add_layers()->set_name("conv1");
  net.mutable_layers(0)->set_type(caffe::V1LayerParameter::CONVOLUTION);
  WriteText(folder / "m.caffemodel", net.SerializeAsString());
  EXPECT_EQ(ReadModelAsWritten(folder / "m.caffemodel").layers(0).name(), "conv1");
  EXPECT_EQ(ReadModel(folder / "m.caffemodel").layer(0).name(), "conv1");
}

TEST(ModelFileTest, RefusesItsFileCutAtEveryLength) {
  const TempFolder folder;
  auto net = SmallNet(5);
  WriteModel(folder / "m.caffemodel", net);
  const std::string whole = ReadText(folder / "m.caffemodel");
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteText(folder / "cut.caffemodel", whole.substr(0, length));
    const auto [code, message] = ErrorOf([&] { ReadModel(folder / "cut.caffemodel"); });
    EXPECT_EQ(code, ErrorCode::kBadSnapshot) << length << ": " << message;
    EXPECT_THAT(message, testing::AnyOf(HasSubstr("is truncated"), HasSubstr("is empty")));
    EXPECT_THAT(message, HasSubstr("cut.caffemodel: "));
  }
}

TEST(ModelFileTest, RefusesItsFileWithAnyBitFlipped) {
  const TempFolder folder;
  auto net = SmallNet(5);
  WriteModel(folder / "m.caffemodel", net);
  const std::string whole = ReadText(folder / "m.caffemodel");
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    WriteText(folder / "bad.caffemodel", bad);
    const auto [code, message] = ErrorOf([&] { ReadModel(folder / "bad.caffemodel"); });
    EXPECT_EQ(code, ErrorCode::kBadSnapshot) << bit << ": " << message;
  }
}

TEST(ModelFileTest, RefusesAnAppendedByte) {
  const TempFolder folder;
  auto net = SmallNet(5);
  WriteModel(folder / "m.caffemodel", net);
  WriteText(folder / "m.caffemodel", ReadText(folder / "m.caffemodel") + "x");
  const auto [code, message] = ErrorOf([&] { ReadModel(folder / "m.caffemodel"); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, HasSubstr("was changed or damaged after it was written"));
}

TEST(ModelFileTest, SaysWhatAnUnsealedFileIsNot) {
  const TempFolder folder;
  const auto refusal = [&](const std::string& content) {
    WriteText(folder / "m.caffemodel", content);
    return ErrorOf([&] { ReadModel(folder / "m.caffemodel"); });
  };
  const std::string whole = SmallNet(5).SerializeAsString();
  const auto cut = refusal(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(cut.first, ErrorCode::kData);
  EXPECT_THAT(cut.second, HasSubstr("cannot be parsed as a weights file (.caffemodel): it is "
                                    "another kind of file, truncated or damaged"));
  EXPECT_EQ(refusal("name: \"LeNet\"\nlayer { }\n").first, ErrorCode::kData);
  caffe::NetParameter nameless;
  nameless.set_name("only a name");
  const auto hollow = refusal(nameless.SerializeAsString());
  EXPECT_EQ(hollow.first, ErrorCode::kData);
  EXPECT_THAT(hollow.second, HasSubstr("has no layers"));
}

TEST(ModelFileTest, RefusesASolverState) {
  const TempFolder folder;
  auto state = SmallState(1);
  state.set_iter(4);
  WriteText(folder / "x", state.SerializeAsString());
  const auto [code, message] = ErrorOf([&] { ReadModel(folder / "x"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("this is a solver state, not a weights file"));
}

TEST(ModelFileTest, FilesOfOtherProgramsNameTheWayToConvertThem) {
  const TempFolder folder;
  for (const auto& [name, way] : {std::pair("m.onnx", "trainer import m.onnx --out="),
                                  std::pair("m.pth", "safetensors.torch.save_file(")}) {
    WriteText(folder / name, "bytes");
    const auto [code, message] = ErrorOf([&] { ReadModel(folder / name); });
    EXPECT_EQ(code, ErrorCode::kData);
    EXPECT_THAT(message, HasSubstr(way));
  }
}

TEST(ModelFileTest, NamesAMissingFileAndAFolder) {
  const TempFolder folder;
  EXPECT_EQ(ErrorOf([&] { ReadModel(folder / "none"); }).first, ErrorCode::kNoInput);
  EXPECT_EQ(ErrorOf([&] { ReadModel(folder.path()); }).first, ErrorCode::kNoInput);
}

TEST(ModelFileTest, RefusesMoreThanProtobufHolds) {
  CheckModelBytes(2147483647);
  const auto [code, message] = ErrorOf([] { CheckModelBytes(2147483648); });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message,
              HasSubstr("would have 2147483648 bytes, but a protobuf file can have at most 2 GiB "
                        "- 1"));
}

TEST(ModelFileTest, LeavesNothingOfAFileThatIsNoModelYet) {
  const TempFolder folder;
  auto net = SmallNet(5, 1000000);
  FaultyOps ops;
  ops.fail_at = 2;
  ops.errno_value = ENOSPC;
  const auto [code, message] = ErrorOf([&] { WriteModel(folder / "m.caffemodel", net, ops); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_EQ(ops.failed_call, "write");
  EXPECT_THAT(message, HasSubstr("No space left on device"));
  EXPECT_THAT(folder.Names(), testing::IsEmpty());
}

}  // namespace
}  // namespace trainer
