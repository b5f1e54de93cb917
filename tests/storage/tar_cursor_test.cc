// Tests tar files as databases: WebDataset's names, patterns, and damaged or hostile archives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "storage/tar_text.h"
#include "storage/test_data.h"
#include "support/protobuf_maps.h"
#include "tar/tar_index.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TarCursorTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) const {
    WriteBytes(folder_ / name, content);
    return folder_ / name;
  }
  // Returns "key label" for all records.
  static std::vector<std::string> All(const std::string& source) {
    const auto cursor = OpenCursor("TAR", source);
    std::vector<std::string> all;
    do {
      caffe::Datum datum;
      EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
      EXPECT_TRUE(datum.encoded());
      all.push_back(Join(cursor->Key(), datum.has_label() ? Join(" ", datum.label()) : ""));
    } while (!cursor->Next());
    return all;
  }
  Thrown Refusal(const std::string& content) const {
    return Catch([&] { OpenCursor("TAR", Write("bad.tar", content)); });
  }

  TempFolder folder_;
};

TEST_F(TarCursorTest, ASampleIsAnImageAndItsLabel) {
  const std::string tar =
      Write("a.tar", TarEntryText("./", "", '5') + TarSample("x/0001", 3, 7) +
                         TarEntryText("x/0002.cls", "-1") + TarEntryText("x/0002.json", "{}") +
                         TarEntryText("x/0002.PNG", "png") + TarEntryText("y.z/0003.jpeg", "jpeg") +
                         TarEntryText("readme.txt", "words") + TarEnd());
  EXPECT_THAT(All(tar), ElementsAre("a.tar/x/0001 7", "a.tar/x/0002 -1", "a.tar/y.z/0003"));
  const auto cursor = OpenCursor("TAR", tar);
  EXPECT_EQ(cursor->Count(), 3);
  EXPECT_TRUE(cursor->Seek("a.tar/x/0002"));
  caffe::Datum datum;
  datum.ParseFromString(std::string(cursor->Value()));
  EXPECT_EQ(datum.data(), "png");
  EXPECT_FALSE(cursor->Seek("a.tar/x/0004"));
  EXPECT_EQ(cursor->Key(), "a.tar/x/0002");
  cursor->SeekLast();
  EXPECT_TRUE(cursor->Next());
  EXPECT_EQ(cursor->Key(), "a.tar/x/0001");
}

// Returns a file in NumPy's format, version 1, with the header padded to a multiple of 64 bytes.
std::string NpyText(const std::string& type, const std::string& shape, const std::string& bytes) {
  std::string header =
      Join("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize(117, ' ');
  return "\x93NUMPY" + std::string("\x01\x00\x76\x00", 4) + header + "\n" + bytes;
}

TEST_F(TarCursorTest, JsonAndNumPyFilesHaveLabels) {
  TRAINER_READS_JSON();
  const auto labels = [&](const std::string& name, const std::string& content) {
    const auto cursor =
        OpenCursor("TAR", Write("a.tar", TarEntryText("k." + name, content) +
                                             TarEntryText("k.png", "png") + TarEnd()));
    caffe::Datum datum;
    EXPECT_TRUE(datum.ParseFromString(std::string(cursor->Value())));
    std::string text = datum.has_label() ? Join("label ", datum.label()) : "";
    for (const float label : datum.labels()) text += Join(" ", label);
    return text;
  };
  EXPECT_EQ(labels("json", "3"), "label 3");
  EXPECT_EQ(labels("json", " [0.5, 3, true]\n"), " 0.5 3 1");
  EXPECT_EQ(labels("json", R"({"caption": "a cat", "label": [1, 0]})"), " 1 0");
  EXPECT_EQ(labels("json", R"({"label": 0.13})"), " 0.13");
  EXPECT_EQ(labels("json", R"({"caption": "a cat"})"), "");
  EXPECT_EQ(labels("npy", NpyText("<i8", "", std::string("\x05\0\0\0\0\0\0\0", 8))), "label 5");
  EXPECT_EQ(labels("npy", NpyText("|u1", "3,", "\x01\x02\xff")), " 1 2 255");
  EXPECT_EQ(labels("npy", NpyText("|b1", "1, 2", std::string("\x01\x00", 2))), " 1 0");
  const double numbers[] = {0.25, -8};
  const std::string bytes(reinterpret_cast<const char*>(numbers), sizeof numbers);
  EXPECT_EQ(labels("npy", NpyText("<f8", "2,", bytes)), " 0.25 -8");
}

TEST_F(TarCursorTest, LargeArraysAreNoLabels) {
  for (const size_t count : {size_t{5000}, size_t{100'000}}) {
    const std::string mask = NpyText("|u1", Join(count, ","), std::string(count, '\1'));
    const std::string tar =
        Write("a.tar", TarEntryText("k.npy", mask) + TarEntryText("k.png", "png") + TarEnd());
    caffe::Datum datum;
    EXPECT_TRUE(datum.ParseFromString(std::string(OpenCursor("TAR", tar)->Value())));
    EXPECT_FALSE(datum.has_label());
    EXPECT_EQ(datum.labels_size(), 0);
  }
}

TEST_F(TarCursorTest, FilesAfterAClassAreNotReadForLabels) {
  const std::string tar = Write("a.tar", TarEntryText("k.cls", "7") + TarEntryText("k.json", "[") +
                                             TarEntryText("k.png", "png") + TarEnd());
  EXPECT_THAT(All(tar), ElementsAre("a.tar/k 7"));
}

TEST_F(TarCursorTest, AClassFileTakesPrecedenceOverOtherLabels) {
  const std::string tar =
      Write("a.tar", TarEntryText("k.json", "[1, 2]") + TarEntryText("k.png", "png") +
                         TarEntryText("k.cls", "7") + TarEnd());
  EXPECT_THAT(All(tar), ElementsAre("a.tar/k 7"));
}

TEST_F(TarCursorTest, RefusesLabelsThatAreNoNumbers) {
  TRAINER_READS_JSON();
  const auto refusal = [&](const std::string& name, const std::string& content) {
    return Refusal(TarEntryText("k.png", "png") + TarEntryText("k." + name, content) + TarEnd());
  };
  EXPECT_THAT(refusal("json", "cat"),
              Refuses(ErrorCode::kData, "bad.tar: k.json is not a JSON file; labels must be"));
  EXPECT_THAT(refusal("json", R"(["cat"])"),
              Refuses(ErrorCode::kData, "k.json has a label that is not a number"));
  EXPECT_THAT(refusal("json", R"({"label": "cat"})"),
              Refuses(ErrorCode::kData, "k.json has a label that is not a number"));
  EXPECT_THAT(refusal("npy", "cat"),
              Refuses(ErrorCode::kData, "array 'k.npy' is not in NumPy's .npy"));
  EXPECT_THAT(refusal("npy", NpyText("<U1", "1,", "1234")),
              Refuses(ErrorCode::kData, "array 'k.npy' has elements of the type <U1"));
  EXPECT_THAT(refusal("npy", NpyText("<f4", "2,", "1234")),
              Refuses(ErrorCode::kData, "k.npy has 4 bytes for 2 numbers of 4 bytes"));
  const float infinite[] = {1, std::numeric_limits<float>::infinity()};
  EXPECT_THAT(
      refusal("npy", NpyText("<f4", "2,", std::string(reinterpret_cast<const char*>(infinite), 8))),
      Refuses(ErrorCode::kData, "k.npy has a label that is not finite"));
  EXPECT_THAT(Refusal(TarEntryText("a.png", "png") + TarEntryText("a.json", "[1, 2]") +
                      TarEntryText("b.png", "png") + TarEntryText("b.cls", "1") + TarEnd()),
              Refuses(ErrorCode::kData,
                      "sample b has 1 label, but samples before it have 2 labels; all samples"));
}

TEST_F(TarCursorTest, PatternsAndListsNameSeveralFilesInTheirOrder) {
  for (int i = 8; i < 12; ++i) {
    Write(Join("s-", i < 10 ? "0" : "", i, ".tar"), TarSample("k", 1, i) + TarEnd());
  }
  const std::vector<std::string> all = {"s-08.tar/k 8", "s-09.tar/k 9", "s-10.tar/k 10",
                                        "s-11.tar/k 11"};
  EXPECT_EQ(All(folder_ / "s-{08..11}.tar"), all);
  EXPECT_EQ(All(folder_ / "s-*.tar"), all);
  EXPECT_EQ(All(folder_ / "s-{08,09,10,11}.tar"), all);
  Write("list", "s-08.tar\ns-09.tar\r\n\n" + (folder_ / "s-10.tar") + "\ns-11.tar\n");
  EXPECT_EQ(All(folder_ / "list"), all);
}

TEST_F(TarCursorTest, FilesOfOneNameKeepTheirSamplesApart) {
  std::filesystem::create_directory(folder_ / "one");
  std::filesystem::create_directory(folder_ / "two");
  Write("one/t.tar", TarSample("k", 1, 1) + TarEnd());
  Write("two/t.tar", TarSample("k", 1, 2) + TarEnd());
  EXPECT_THAT(All(folder_ / "{one,two}/t.tar"), ElementsAre("t.tar/k 1", "t.tar#2/k 2"));
}

TEST_F(TarCursorTest, ReadsWhatTarWritesWithLongNames) {
  const std::string name = std::string(120, 'd') + "/" + std::string(130, 'n');
  std::filesystem::create_directory(folder_ / std::string(120, 'd'));
  Write(name + ".jpg", std::string(1000, 'j'));
  Write(name + ".cls", "5");
  for (const char* format : {"gnu", "pax", "posix", "ustar"}) {
    if (std::string(format) == "ustar" && name.size() > 250) continue;
    const std::string command = Join("cd '", folder_ / "", "' && tar --format=", format, " -cf ",
                                     format, ".tar ", name, ".cls ", name, ".jpg");
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_THAT(All(folder_ / Join(format, ".tar")),
                ElementsAre(Join(format, ".tar/", name, " 5")));
  }
}

TEST_F(TarCursorTest, LinksDevicesAndFoldersAreNoSamples) {
  std::string device = TarEntryText("dev.jpg", "", '3');
  EXPECT_THAT(All(Write("l.tar", TarEntryText("a.jpg", "", '2') + TarEntryText("b.jpg", "", '1') +
                                     device + TarSample("../../etc/k", 1, 1) + TarEnd())),
              ElementsAre("l.tar/../../etc/k 1"));
}

TEST_F(TarCursorTest, AnArchiveCutAtAnyByteIsRefusedByName) {
  const std::string whole = TarSample("a", 1, 1) + TarSample("b", 2, 2) + TarEnd();
  for (size_t bytes = 0; bytes < whole.size() - 512; bytes += 37) {
    const Thrown thrown = Refusal(whole.substr(0, bytes));
    EXPECT_EQ(thrown.code, static_cast<int>(ErrorCode::kData)) << bytes;
    EXPECT_THAT(thrown.text, HasSubstr("bad.tar: ")) << bytes;
  }
}

TEST_F(TarCursorTest, RefusesWhatItCannotRead) {
  EXPECT_THAT(
      Refusal(std::string("\x1f\x8b\x08", 3) + std::string(600, '\1')),
      Refuses(ErrorCode::kData, "compressed with gzip, so its records cannot be found; unpack"));
  EXPECT_THAT(Refusal(std::string(100, '\0') + std::string(2000, '\1')),
              Refuses(ErrorCode::kData, "is not a tar archive"));
  std::string damaged = TarSample("a", 1, 1) + TarEnd();
  damaged[1024] = 'x';
  EXPECT_THAT(Refusal(damaged), Refuses(ErrorCode::kData,
                                        "the header of an entry is missing (at "
                                        "byte 1024)"));
  EXPECT_THAT(Refusal(TarEntryText("s", "", 'S') + TarEnd()),
              Refuses(ErrorCode::kData, "sparse file, which is not supported"));
  EXPECT_THAT(Refusal(TarEntryText("h", "12 path=x", 'x') + TarEnd()),
              Refuses(ErrorCode::kData, "an extended header cannot be parsed"));
  EXPECT_THAT(Refusal(TarEntryText("a.jpg", "x") + TarEntryText("a.png", "x") + TarEnd()),
              Refuses(ErrorCode::kData, "sample a has two images"));
  EXPECT_THAT(Refusal(TarEntryText("a.cls", "1") + TarEnd()),
              Refuses(ErrorCode::kData, "sample a has no image"));
  for (const char* label : {"", "x", "1 2", "1.5", "3000000000"}) {
    EXPECT_THAT(Refusal(TarEntryText("a.jpg", "x") + TarEntryText("a.cls", label) + TarEnd()),
                Refuses(ErrorCode::kData, "a label must be one 32-bit integer"))
        << label;
  }
  EXPECT_THAT(Refusal(TarEnd()), Refuses(ErrorCode::kData,
                                         "the tar file has no images: a sample is "
                                         "an image"));
  EXPECT_THAT(Catch([&] { OpenCursor("TAR", folder_ / "x-*.tar"); }),
              Refuses(ErrorCode::kNoInput, "no file matches this pattern"));
  EXPECT_THAT(Catch([&] { OpenCursor("TAR", folder_ / "x.tar"); }).code,
              static_cast<int>(ErrorCode::kNoInput));
  EXPECT_THAT(Catch([&] { OpenCursor("TAR", "a{9..1}.tar"); }),
              Refuses(ErrorCode::kData, "must count up"));
  EXPECT_THAT(Catch([&] { OpenCursor("TAR", "a{0..99999}{0..99999}.tar"); }),
              Refuses(ErrorCode::kData, "more than 100000 files"));
}

TEST_F(TarCursorTest, AClaimOfMoreThanIsThereTakesNoMemory) {
  std::string entry = TarEntryText("a.jpg", "x");
  // The size is 2^61 bytes in base 256, and the checksum is recomputed.
  entry.replace(124, 12, std::string("\x80\0\0\0\x20\0\0\0\0\0\0\0", 12));
  entry.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(entry[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  entry.replace(148, 8, std::string(digits, 7) + " ");
  EXPECT_THAT(Refusal(entry + TarEnd()),
              Refuses(ErrorCode::kData, "more than the rest of the archive"));
}

TEST_F(TarCursorTest, AFileThatBecameShorterIsNamed) {
  const std::string tar = Write("a.tar", TarSample("a", 1, 1) + TarSample("b", 2, 2) + TarEnd());
  const auto cursor = OpenCursor("TAR", tar);
  std::filesystem::resize_file(tar, 1024);
  cursor->SeekLast();
  EXPECT_THAT(Catch([&] { cursor->Value(); }),
              Refuses(ErrorCode::kData, "the file became shorter while it was read"));
}

// A file system with an archive of empty pictures "00000000.pgm", ..., whose headers are generated
// when they are read.
class ManyEntries : public FileOps {
 public:
  explicit ManyEntries(uint64_t entries) : entries_(entries), header_(TarEntryText(Name(0), "")) {}

  static std::string Name(uint64_t i) { return Key8(static_cast<int>(i)) + ".pgm"; }

  ssize_t Pread(int, void* to, size_t bytes, uint64_t offset) override {
    EXPECT_EQ((offset | bytes) % kBlock, 0u);
    for (size_t done = 0; done < bytes; done += kBlock) {
      Fill((offset + done) / kBlock, static_cast<char*>(to) + done);
    }
    return static_cast<ssize_t>(bytes);
  }

 private:
  static constexpr uint64_t kBlock = 512;

  // The checksum grows by the digits of the name.
  void Fill(uint64_t entry, char* to) const {
    if (entry >= entries_) {
      std::memset(to, 0, kBlock);
      return;
    }
    std::memcpy(to, header_.data(), kBlock);
    unsigned sum = 0;
    for (int digit = 7; digit >= 0; --digit, entry /= 10) {
      to[digit] = static_cast<char>('0' + entry % 10);
      sum += static_cast<unsigned>(entry % 10);
    }
    unsigned whole = 0;
    for (int i = 148; i < 154; ++i) whole = whole * 8 + static_cast<unsigned>(to[i] - '0');
    whole += sum;
    for (int i = 153; i >= 148; --i, whole /= 8) to[i] = static_cast<char>('0' + whole % 8);
  }

  uint64_t entries_;
  std::string header_;
};

class ManyEntriesTest : public TarCursorTest {
 protected:
  // Creates a sparse file of the size of an archive with `entries` entries.
  std::string Sparse(uint64_t entries) const {
    const std::string path = Write("many.tar", "");
    std::filesystem::resize_file(path, (entries + 2) * 512);
    return path;
  }
};

TEST_F(ManyEntriesTest, TenMillionNamesAreIndexed) {
  constexpr uint64_t kEntries = 10'000'000;
  ManyEntries ops(kEntries);
  const std::string path = Sparse(kEntries);
  const TarIndex index(path, {path}, TarIndex::kMostEntries, ops);
  EXPECT_EQ(index.count(), kEntries);
  EXPECT_EQ(index.KeyOf(kEntries - 1), "many.tar/09999999");
  EXPECT_EQ(index.Find("many.tar/08765432"), 8765432u);
}

TEST_F(ManyEntriesTest, MoreThanTheMostAreRefusedBeforeTheyTakeMemory) {
  ManyEntries ops(1000);
  const std::string path = Sparse(1000);
  EXPECT_EQ(TarIndex(path, {path}, 1000, ops).count(), 1000u);
  EXPECT_THAT(Catch([&] { TarIndex(path, {path}, 999, ops); }),
              Refuses(ErrorCode::kData, "the tar files have too many entries"));
}

}  // namespace
}  // namespace trainer
