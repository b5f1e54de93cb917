// Tests the conversion of sets to other formats.

#include "trainer/datasets/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "storage/test_data.h"
#include "support/file_size_limit.h"
#include "support/in_child.h"
#include "support/log_collector.h"
#include "trainer/base/process/command.h"
#include "trainer/datasets/verify.h"
#include "trainer/hdf5/reader.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Records ReadAllConvert(const std::string& path) {
  Records records;
  RecordScan scan(path);
  StoredRecord record;
  while (scan.Next(&record)) records.emplace_back(record.key, record.value);
  return records;
}

// Another process creates the set in the meantime.
TEST(NewSetTest, ASetThatWasMadeMeanwhileIsNotOverwritten) {
  for (const std::string name : {"db", "set.tar", "set.h5"}) {
    const TempFolder folder;
    const std::string path = folder / name;
    const auto writer = OpenRecordWriter({path});
    StoredRecord record{"00000000", MakeDatum(1, 1, 1, "x", 1).SerializeAsString()};
    writer->Prepare(&record);
    writer->Put(record);
    if (name == "db") {
      std::filesystem::create_directory(path);
      WriteBytes(path + "/data.mdb", "another's");
    } else {
      WriteBytes(path, "another's");
    }
    EXPECT_THAT(Catch([&] { writer->Finish(); }),
                Refuses(ErrorCode::kCannotCreate, "already exists and is not overwritten"))
        << name;
    EXPECT_EQ(ReadBytes(name == "db" ? path + "/data.mdb" : path), "another's");
  }
}

// Returns records of 3x4x5 bytes, which all differ.
Records PixelRecords(int count) {
  Records records;
  for (int i = 0; i < count; ++i) {
    std::string pixels(60, '\0');
    for (int k = 0; k < 60; ++k) pixels[static_cast<size_t>(k)] = static_cast<char>(i * 7 + k * 3);
    records.emplace_back(Key8(i), MakeDatum(3, 4, 5, pixels, i % 4).SerializeAsString());
  }
  return records;
}

class ConvertTest : public testing::Test {
 protected:
  int64_t Convert(const std::string& from, const std::string& to,
                  const std::string& backend = "LMDB", uint64_t shard_bytes = 0) {
    return ConvertRecords(folder_ / from, {folder_ / to, backend, shard_bytes}, 3);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "")) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  TempFolder folder_;
};

TEST_F(ConvertTest, KeepsKeysAndBytesInAnyKindOfDatabase) {
  const Records records{
      {"a", "one"}, {"b2", std::string("\0two", 4)}, {"c", std::string(9000, 'x')}};
  for (const std::string from : {"LMDB", "LEVELDB"}) {
    WriteDb(from, folder_ / from, records);
    for (const std::string to : {"LMDB", "LEVELDB"}) {
      EXPECT_EQ(Convert(from, from + "_" + to, to), 3);
      EXPECT_EQ(DetectFormat(folder_ / (from + "_" + to)), to);
      EXPECT_EQ(ReadAllConvert(folder_ / (from + "_" + to)), records);
    }
  }
}

TEST_F(ConvertTest, ReplacesNothing) {
  WriteDb("LMDB", folder_ / "db", NumberedRecords(2));
  for (const char* name : {"db", "old.h5", "old.tar"}) {
    if (name != std::string("db")) WriteBytes(folder_ / name, "old");
    const Thrown thrown = Catch([&] { Convert("db", name); });
    EXPECT_EQ(thrown.code, 73);
    EXPECT_THAT(thrown.text, HasSubstr("already exists"));
  }
  EXPECT_EQ(ReadAllConvert(folder_ / "db").size(), 2u);
  EXPECT_THAT(Names(), ElementsAre("db", "old.h5", "old.tar"));
}

TEST_F(ConvertTest, BytesGoThroughHdf5AndBackUnchanged) {
  const Records records = PixelRecords(300);
  WriteDb("LMDB", folder_ / "db", records);
  EXPECT_EQ(Convert("db", "db.h5"), 300);
  EXPECT_EQ(ReadBytes(folder_ / "db.txt"), "db.h5\n");
  EXPECT_EQ(Convert("db.txt", "again"), 300);
  EXPECT_EQ(ReadAllConvert(folder_ / "again"), records);
  const Hdf5Reader file(folder_ / "db.h5");
  EXPECT_THAT(file.Array("data").dims(), ElementsAre(300, 3, 4, 5));
  EXPECT_FALSE(file.Array("data").is_float());  // a quarter of the size
}

TEST_F(ConvertTest, FloatsGoThroughHdf5AndBackUnchanged) {
  Records records;
  for (int i = 0; i < 5; ++i) {
    caffe::Datum datum = MakeDatum(2, 1, 1, "", i);
    datum.clear_data();
    datum.add_float_data(0.5f + static_cast<float>(i));
    datum.add_float_data(-3e30f);
    records.emplace_back(Key8(i), datum.SerializeAsString());
  }
  WriteDb("LMDB", folder_ / "db", records);
  Convert("db", "db.h5");
  Convert("db.h5", "again");
  EXPECT_EQ(ReadAllConvert(folder_ / "again"), records);
}

TEST_F(ConvertTest, SeveralLabelsGoThroughEveryFormatUnchanged) {
  Records records;
  for (int i = 0; i < 5; ++i) {
    caffe::Datum datum = MakeDatum(1, 1, 2, "ab", 0);
    datum.clear_label();
    datum.add_labels(static_cast<float>(i));
    datum.add_labels(0.1f * static_cast<float>(i));
    records.emplace_back(Key8(i), datum.SerializeAsString());
  }
  WriteDb("LMDB", folder_ / "db", records);
  Convert("db", "db.h5");
  EXPECT_THAT(Hdf5Reader(folder_ / "db.h5").Array("label").dims(), ElementsAre(5, 2));
  Convert("db.h5", "again");
  EXPECT_EQ(ReadAllConvert(folder_ / "again"), records);
  Convert("db", "db.tar");
  Convert("db.tar", "unpacked");
  const Records unpacked = ReadAllConvert(folder_ / "unpacked");
  ASSERT_EQ(unpacked.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    caffe::Datum got, want;
    got.ParseFromString(unpacked[i].second);
    want.ParseFromString(records[i].second);
    EXPECT_EQ(std::vector<float>(got.labels().begin(), got.labels().end()),
              std::vector<float>(want.labels().begin(), want.labels().end()));
  }
  std::ostringstream report;
  Print(VerifyRecords(folder_ / "db"), report);
  EXPECT_THAT(report.str(), HasSubstr("\nlabels per record: 2, 5\n"));
}

TEST_F(ConvertTest, Hdf5RefusesTwoShapesByName) {
  WriteDb("LMDB", folder_ / "db",
          {{"a", MakeDatum(1, 1, 2, "ab", 0).SerializeAsString()},
           {"b", MakeDatum(1, 2, 1, "ab", 0).SerializeAsString()}});
  EXPECT_THAT(
      Catch([&] { Convert("db", "db.h5"); }),
      Refuses(ErrorCode::kData, "record 'b' is 1x2x1 bytes with a label, but record 'a' is"));
  EXPECT_THAT(Names(), ElementsAre("db"));
}

TEST_F(ConvertTest, PixelsBecomePngInATarFileThatTarReads) {
  const Records records = PixelRecords(30);
  WriteDb("LMDB", folder_ / "db", records);
  EXPECT_EQ(Convert("db", "db.tar"), 30);
  const CommandResult listed =
      RunCommand({"tar", "tf", folder_ / "db.tar"}, std::chrono::minutes(4));
  if (listed.exit_code < 0) GTEST_SKIP() << listed.problem;
  EXPECT_THAT(listed.out, testing::StartsWith("00000000.png\n00000000.cls\n00000001.png\n"));
  const CommandResult label =
      RunCommand({"tar", "xOf", folder_ / "db.tar", "00000003.cls"}, std::chrono::minutes(4));
  EXPECT_EQ(label.out, "3");
}

TEST_F(ConvertTest, ShardsAreFilesOfTheSizeThatWasAskedFor) {
  WriteDb("LMDB", folder_ / "db", PixelRecords(30));
  Convert("db", "db.tar", "LMDB", 20000);
  const std::vector<std::string> names = Names();
  ASSERT_GE(names.size(), 3u);
  EXPECT_EQ(names[1], "db-000000.tar");
  EXPECT_EQ(names[2], "db-000001.tar");
  for (size_t i = 1; i < names.size(); ++i) {
    EXPECT_LE(std::filesystem::file_size(folder_ / names[i]), 20480u + 10240);
  }
}

TEST_F(ConvertTest, ATarFileRefusesFloatsAndKeysThatBecomeAlike) {
  caffe::Datum floats = MakeDatum(1, 1, 1, "", 0);
  floats.clear_data();
  floats.add_float_data(1);
  WriteDb("LMDB", folder_ / "floats", {{"a", floats.SerializeAsString()}});
  EXPECT_THAT(Catch([&] { Convert("floats", "f.tar"); }),
              Refuses(ErrorCode::kData,
                      "record 'a' is 1x1x1 floats; a tar file can only store "
                      "images"));
  const std::string one = MakeDatum(1, 1, 1, "x", 0).SerializeAsString();
  WriteDb("LMDB", folder_ / "alike", {{"a.b.jpg", one}, {"a_b.png", one}});
  EXPECT_THAT(Catch([&] { Convert("alike", "a.tar"); }),
              Refuses(ErrorCode::kData,
                      "record 'a_b.png' would have the name 'a_b', the same as an earlier record"));
  EXPECT_THAT(Names(), ElementsAre("alike", "floats"));
}

TEST_F(ConvertTest, AFullDiskLeavesNothingThatLooksWhole) {
  Records records;
  for (int i = 0; i < 40; ++i) {
    std::string noise(30000, '\0');
    for (size_t k = 0; k < noise.size(); ++k)
      noise[k] = static_cast<char>((k * k * 31 + k * 7) >> 3 ^ i);
    records.emplace_back(Key8(i), MakeDatum(3, 100, 100, noise, i).SerializeAsString());
  }
  WriteDb("LMDB", folder_ / "db", records);
  for (const char* name : {"new", "new.h5", "new.tar"}) {
    const Thrown thrown = Catch([&] {
      const FileSizeLimit limit(200000);
      Convert("db", name);
    });
    EXPECT_EQ(thrown.code, 74) << name << ": " << thrown.text;
    EXPECT_THAT(Names(), ElementsAre("db"));
  }
}

TEST_F(ConvertTest, ADamagedSourceLeavesNothing) {
  WriteDb("LMDB", folder_ / "db", {{"a", "no Datum"}});
  for (const char* name : {"new.h5", "new.tar"}) {
    EXPECT_THAT(Catch([&] { Convert("db", name); }), Refuses(ErrorCode::kData, "record 'a'"));
  }
  EXPECT_THAT(Names(), ElementsAre("db"));
}

TEST_F(ConvertTest, WhatAKilledConversionLeftIsHiddenAndGoesWithTheNextOne) {
  WriteDb("LMDB", folder_ / "db", PixelRecords(3));
  for (const std::string name : {"new", "new.h5", "new.tar"}) {
    const int status = InChild([&] {
      const auto writer = OpenRecordWriter({folder_ / name});
      writer->Put({"00000000", PixelRecords(1)[0].second});
      return raise(SIGKILL);
    });
    EXPECT_EQ(status, 128 + SIGKILL);
    ASSERT_EQ(Names().size(), 2u);
    EXPECT_THAT(Names()[0], testing::StartsWith("." + name + ".tmp."));
    Convert("db", name);
    EXPECT_THAT(Names()[0], testing::Not(testing::StartsWith(".")));
    for (const char* type : {"new", "new.h5", "new.txt", "new.tar"}) {
      std::filesystem::remove_all(folder_ / type);
    }
  }
}

TEST_F(ConvertTest, ATarFileKeepsTheOrderOfItsRecordsInADatabase) {
  Records records;
  for (const auto& [key, value] : PixelRecords(20)) {
    records.emplace_back(key + "_" + std::string(1, static_cast<char>('z' - records.size())),
                         value);
  }
  WriteDb("LMDB", folder_ / "db", records);
  Convert("db", "db.tar", "LMDB", 4000);
  ASSERT_GE(Names().size(), 3u);
  EXPECT_EQ(Convert("db-*.tar", "again"), 20);
  const Records again = ReadAllConvert(folder_ / "again");
  ASSERT_EQ(again.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(again[i].first, records[i].first);
    DatumParser before, after;
    const DatumView& want = before.Parse("it", "k", records[i].second);
    const DatumView& got = after.Parse("it", "k", again[i].second);
    EXPECT_EQ(got.bytes, want.bytes);  // PNG is lossless
    EXPECT_EQ(got.label, want.label);
  }
}

TEST_F(ConvertTest, TarFilesAreCheckedAndMeasuredAsOtherSets) {
  WriteDb("LMDB", folder_ / "db", PixelRecords(20));
  Convert("db", "db.tar");
  const VerifyReport report = VerifyRecords(folder_ / "db.tar", {.write_crc = true});
  EXPECT_EQ(report.kind, "TAR");
  EXPECT_EQ(report.records, 20);
  EXPECT_EQ(report.bad, 0);
  EXPECT_EQ(report.encoded, 20);
  std::string bytes = ReadBytes(folder_ / "db.tar");
  const size_t at = bytes.find("IDAT");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 10] = static_cast<char>(bytes[at + 10] ^ 1);
  WriteBytes(folder_ / "db.tar", bytes);
  EXPECT_EQ(VerifyRecords(folder_ / "db.tar").bad, 1);
}

// --- split ---

TEST_F(ConvertTest, SplitPutsEachRecordIntoOneOfTheTwoSets) {
  const Records records = PixelRecords(100);
  WriteDb("LMDB", folder_ / "db", records);
  SplitOptions options;
  options.share = {.share = 0.2};
  options.stratified = true;
  options.threads = 3;
  const SplitResult result =
      SplitRecords(folder_ / "db", {folder_ / "rest"}, {folder_ / "part", "LEVELDB"}, options);
  EXPECT_EQ(result.first, 80);
  EXPECT_EQ(result.second, 20);
  Records rest = ReadAllConvert(folder_ / "rest");
  const Records part = ReadAllConvert(folder_ / "part");
  std::map<int, int> labels;
  for (const auto& [key, value] : part) {
    caffe::Datum datum;
    datum.ParseFromString(value);
    ++labels[datum.label()];
  }
  for (const auto& [label, count] : labels) EXPECT_EQ(count, 5);
  rest.insert(rest.end(), part.begin(), part.end());
  std::ranges::sort(rest);
  EXPECT_EQ(rest, records);
}

TEST_F(ConvertTest, BytesGoThroughNumpysFormatAndBackUnchanged) {
  const Records records = PixelRecords(300);
  WriteDb("LMDB", folder_ / "db", records);
  EXPECT_EQ(Convert("db", "db.npz"), 300);
  EXPECT_EQ(DetectFormat(folder_ / "db.npz"), "NUMPY");
  EXPECT_EQ(Convert("db.npz", "again"), 300);
  EXPECT_EQ(ReadAllConvert(folder_ / "again"), records);
  EXPECT_THAT(Names(), ElementsAre("again", "db", "db.npz"));
  EXPECT_THAT(Catch([&] { Convert("db", "db.npy"); }),
              Refuses(ErrorCode::kUsage, "an .npy file holds one array, but a set has data and"));
}

TEST_F(ConvertTest, ChannelsThatAreLastComeFirst) {
  const std::string images = SourceFolder() + "/tests/golden/tables/images.npy";  // (5, 6, 7, 3)
  EXPECT_EQ(ConvertRecords(images, {folder_ / "db"}, 3, true), 5);
  DatumParser parser;
  const Records records = ReadAllConvert(folder_ / "db");
  for (size_t i = 0; i < 5; ++i) {
    const DatumView& view = parser.Parse("db", records[i].first, records[i].second);
    ASSERT_EQ(view.ShapeText(), "3x6x7");
    for (size_t at = 0; at < 126; ++at) {
      const size_t channel = at / 42, pixel = at % 42;
      EXPECT_EQ(static_cast<uint8_t>(view.bytes[at]), (i * 126 + pixel * 3 + channel) % 251);
    }
  }
}

TEST_F(ConvertTest, ImagesThatLookLikeChannelsLastAreWarnedOf) {
  const std::string images = SourceFolder() + "/tests/golden/tables/images.npy";
  const LogCollector log;
  ConvertRecords(images, {folder_ / "db"}, 1);
  EXPECT_THAT(log.lines, testing::Contains(HasSubstr(
                             "the images are read as 6 channels of 7x3 pixels; if the channels are "
                             "the last axis, give --channels_last")));
}

}  // namespace
}  // namespace trainer
