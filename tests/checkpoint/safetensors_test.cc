#include "safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Returns eight bytes with the length of the header, the header, and the bytes after it.
std::string FileText(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

template <class T>
std::string BytesOf(std::initializer_list<T> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(T)};
}

class SafetensorsTest : public testing::Test {
 protected:
  // Returns the values of a tensor in a file.
  std::vector<float> Read(const std::string& bytes, size_t index, size_t count) const {
    const SafetensorsFile file(folder_.Write("w.safetensors", bytes));
    std::vector<float> values(count);
    file.Read(file.tensors()[index], values);
    return values;
  }
  // Returns the error for a header that is followed by `data_bytes` bytes of data.
  std::string ErrorFor(const std::string& header, size_t data_bytes) const {
    const auto [code, message] = ErrorOf([&] {
      const SafetensorsFile file(
          folder_.Write("w.safetensors", FileText(header, std::string(data_bytes, '\0'))));
    });
    EXPECT_EQ(code, ErrorCode::kData) << header;
    EXPECT_THAT(message, StartsWith(folder_ / "w.safetensors: "));
    return message;
  }

  TempFolder folder_;
};

TEST_F(SafetensorsTest, ReadsAFileWrittenByHand) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]},)"
      R"("a\"\u00e9\ud83d\ude00":{"shape":[1,3],"data_offsets":[0,12],"dtype":"F32"}})"
      "  \n";
  const std::string bytes = FileText(header, BytesOf<float>({1, 2, 3, 4, 5}));
  const SafetensorsFile file(folder_.Write("w.safetensors", bytes));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "a\"\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_THAT(file.tensors()[0].dims, ElementsAre(1, 3));
  EXPECT_EQ(file.tensors()[1].name, "b");
  EXPECT_THAT(Read(bytes, 0, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Read(bytes, 1, 2), ElementsAre(4, 5));
}

TEST_F(SafetensorsTest, WidensTheTypesOfFloats) {
  const auto read = [&](const std::string& type, const std::string& data) {
    const std::string header = Join(R"({"a":{"dtype":")", type, R"(","shape":[2],)",
                                    R"("data_offsets":[0,)", data.size(), "]}}");
    return Read(FileText(header, data), 0, 2);
  };
  EXPECT_THAT(read("F16", BytesOf<uint16_t>({0x3c00, 0xc100})), ElementsAre(1, -2.5));
  EXPECT_THAT(read("BF16", BytesOf<uint16_t>({0x3f80, 0xc020})), ElementsAre(1, -2.5));
  EXPECT_THAT(read("F64", BytesOf<double>({0.1, -2.5})), ElementsAre(0.1f, -2.5));
  const auto [code, message] = ErrorOf([&] { read("I64", BytesOf<int64_t>({1, 2})); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("tensor 'a' has numbers of type I64, but weights must be F32, "
                                 "F16, BF16 or F64"));
}

TEST_F(SafetensorsTest, TakesTensorsWithoutNumbers) {
  const SafetensorsFile file(folder_.Write(
      "w.safetensors", FileText(R"({"a":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
                                R"("b":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                                std::string(8, '\1'))));
  EXPECT_EQ(file.tensors().size(), 2u);
}

TEST_F(SafetensorsTest, WritesWhatItReads) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {-0.0f};
  const std::vector<NamedTensor> tensors = {{"conv.0", {2, 3}, a}, {"conv.1", {}, b}};
  std::string bytes, again;
  EmitSafetensors(tensors, [&](const void* data, size_t count) {
    bytes.append(static_cast<const char*>(data), count);
  });
  EmitSafetensors(tensors, [&](const void* data, size_t count) {
    again.append(static_cast<const char*>(data), count);
  });
  EXPECT_EQ(bytes, again);
  EXPECT_EQ((bytes.size() - (a.size() + b.size()) * 4) % 8, 0u);
  const SafetensorsFile file(folder_.Write("w.safetensors", bytes));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "conv.0");
  EXPECT_THAT(file.tensors()[0].dims, ElementsAre(2, 3));
  EXPECT_EQ(Read(bytes, 0, 6), a);
  EXPECT_TRUE(std::signbit(Read(bytes, 1, 1)[0]));
}

TEST_F(SafetensorsTest, FindsAChangedNumberOfItsOwnFile) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<NamedTensor> tensors = {{"conv.0", {3}, a}};
  std::string bytes;
  EmitSafetensors(tensors, [&](const void* data, size_t count) {
    bytes.append(static_cast<const char*>(data), count);
  });
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto [code, message] = ErrorOf([&] { Read(bytes, 0, 3); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, HasSubstr("its checksum does not match: the file was changed or damaged"));
}

TEST_F(SafetensorsTest, RefusesALengthThatTheFileDoesNotHave) {
  const auto error = [&](const std::string& bytes) {
    const auto [code, message] =
        ErrorOf([&] { const SafetensorsFile file(folder_.Write("w.safetensors", bytes)); });
    EXPECT_EQ(code, ErrorCode::kData);
    return message;
  };
  EXPECT_THAT(error(""), HasSubstr("this is not a safetensors file: it has only 0 bytes"));
  EXPECT_THAT(error(std::string(8, '\xff') + "{}"),
              HasSubstr("its header would have 18446744073709551615 bytes, but the file has 10"));
  const std::string bytes = FileText("{}", "");
  EXPECT_THAT(error(bytes.substr(0, 9)), HasSubstr("its header would have 2 bytes"));
  folder_.Write("big", FileText(std::string(1 << 25, ' '), ""));
  EXPECT_THAT(ErrorOf([&] { const SafetensorsFile file(folder_ / "big"); }).second,
              HasSubstr("its header would have 33554432 bytes; at most 16777216 are read"));
}

TEST_F(SafetensorsTest, RefusesAHeaderThatIsNotItsJson) {
  EXPECT_THAT(ErrorFor("", 0), HasSubstr("header of this safetensors file is damaged at its byte "
                                         "0: '{' is missing"));
  EXPECT_THAT(ErrorFor("[1]", 0), HasSubstr("'{' is missing"));
  EXPECT_THAT(ErrorFor("{} {}", 0), HasSubstr("there is text after its end"));
  EXPECT_THAT(ErrorFor(R"({"a)", 0), HasSubstr("a string does not end"));
  EXPECT_THAT(ErrorFor("{\"a\n\":1}", 0), HasSubstr("a string has a control character"));
  EXPECT_THAT(ErrorFor("{\"\xff\":{}}", 0), HasSubstr("a string is not UTF-8"));
  EXPECT_THAT(ErrorFor(R"({"\x":{}})", 0), HasSubstr("a string has an unknown escape"));
  EXPECT_THAT(ErrorFor(R"({"\u12":{}})", 0), HasSubstr("an escape has no four digits"));
  EXPECT_THAT(ErrorFor(R"({"\ud800":{}})", 0), HasSubstr("a string has half a character"));
  EXPECT_THAT(ErrorFor(R"({"__metadata__":{"a":1}})", 0), HasSubstr("'\"' is missing"));
  EXPECT_THAT(ErrorFor(R"({"a":[]})", 0), HasSubstr("'{' is missing"));
  EXPECT_THAT(ErrorFor(R"({"a":{"dtype":"F32"}})", 0),
              HasSubstr("tensor 'a' needs dtype, shape and two data_offsets"));
  EXPECT_THAT(ErrorFor(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4),
              HasSubstr("tensor 'a' needs dtype, shape and two data_offsets"));
  EXPECT_THAT(ErrorFor(R"({"a":{"x":1}})", 0), HasSubstr("a tensor has the unknown field 'x'"));
  EXPECT_THAT(ErrorFor(R"({"a":{"shape":[-1]}})", 0),
              HasSubstr("a whole number is missing or too large"));
  EXPECT_THAT(ErrorFor(R"({"a":{"shape":[1.5]}})", 0), HasSubstr("']' is missing"));
  EXPECT_THAT(ErrorFor(R"({"a":{"shape":[99999999999999999999]}})", 0),
              HasSubstr("a whole number is missing or too large"));
  EXPECT_THAT(ErrorFor(std::string(100000, '{'), 0), HasSubstr("'\"' is missing"));
}

TEST_F(SafetensorsTest, RefusesANameThatIsThereTwice) {
  EXPECT_THAT(ErrorFor(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                       8),
              HasSubstr("it has 'a' twice"));
  EXPECT_THAT(ErrorFor(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1]}})", 4),
              HasSubstr("it has 'dtype' twice"));
}

TEST_F(SafetensorsTest, RefusesOffsetsThatDoNotAgree) {
  const auto tensor = [](const char* name, const char* type, const char* shape, uint64_t begin,
                         uint64_t end) {
    return Join("\"", name, R"(":{"dtype":")", type, R"(","shape":[)", shape,
                R"(],"data_offsets":[)", begin, ",", end, "]}");
  };
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F32", "2", 0, 8) + "}", 4),
              HasSubstr("tensor 'a' has the bytes from 0 to 8, but the file has 4 bytes"));
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F32", "1", 8, 4) + "}", 8),
              HasSubstr("tensor 'a' has the bytes from 8 to 4"));
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F32", "3", 0, 8) + "}", 8),
              HasSubstr("tensor 'a' has 8 bytes, which do not agree with its shape and F32"));
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F33", "2", 0, 8) + "}", 8),
              HasSubstr("tensor 'a' has numbers of the unknown type 'F33'"));
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F16", "2", 0, 8) + "}", 8),
              HasSubstr("tensor 'a' has 8 bytes, which do not agree with its shape and F16"));
  EXPECT_THAT(
      ErrorFor("{" + tensor("a", "F32", "4294967296,4294967296,4294967296,2", 0, 8) + "}", 8),
      HasSubstr("tensor 'a' has 8 bytes, which do not agree with its shape"));
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F32", "4611686018427387904,4,0", 0, 0) + "}", 0),
              HasSubstr("tensor 'a' has 0 bytes, which do not agree with its shape"));
  EXPECT_THAT(
      ErrorFor("{" + tensor("a", "F32", "2", 0, 8) + "," + tensor("b", "F32", "2", 4, 12) + "}",
               12),
      HasSubstr("tensor 'b' begins at byte 4, inside the tensor before it, which ends at "
                "byte 8"));
  EXPECT_THAT(
      ErrorFor("{" + tensor("a", "F32", "1", 0, 4) + "," + tensor("b", "F32", "1", 8, 12) + "}",
               12),
      HasSubstr("tensor 'b' begins at byte 8, but the tensor before it ends at byte 4"));
  EXPECT_THAT(ErrorFor("{" + tensor("a", "F32", "1", 0, 4) + "}", 12),
              HasSubstr("the file has 12 bytes of numbers, but its tensors only 4"));
}

}  // namespace
}  // namespace trainer
