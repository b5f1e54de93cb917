#pragma once
// Provides folders, databases, records, layers and captured log lines for tests of data.

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datum.pb.h"
#include "support/source_folder.h"
#include "support/temp_folder.h"
#include "trainer/base/error/error.h"
#include "trainer/config/layer_spec.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"

namespace trainer {

using Records = std::vector<std::pair<std::string, std::string>>;

inline void WriteDb(const std::string& backend, const std::string& path, const Records& records) {
  const auto writer = CreateDb(backend, path);
  for (const auto& [key, value] : records) writer->Put(key, value);
  writer->Commit();
}

inline std::string Key8(int i) {
  std::string digits = std::to_string(i);
  return std::string(8 - digits.size(), '0') + digits;
}

inline caffe::Datum MakeDatum(int channels, int height, int width, std::string data, int label) {
  caffe::Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_data(std::move(data));
  datum.set_label(label);
  return datum;
}

// Returns records whose only pixel and label are their number.
inline Records NumberedRecords(int count) {
  Records records;
  for (int i = 0; i < count; ++i) {
    const std::string pixel(1, static_cast<char>(i));
    records.emplace_back(Key8(i), MakeDatum(1, 1, 1, pixel, i).SerializeAsString());
  }
  return records;
}

// Returns a layer as read from a file "net.prototxt" that contains only this layer. It is kept
// until the program ends, because a net's text outlives its layers.
inline const LayerSpec& KeptLayer(const std::string& text) {
  static std::deque<std::unique_ptr<ParsedText>> texts;
  static std::deque<LayerSpec> layers;
  caffe::LayerParameter proto;
  texts.push_back(ParseTextString("net.prototxt", text, &proto));
  return layers.emplace_back(proto, SourceRef{"net.prototxt", 1, 1}, &texts.back()->tree);
}

// Copies an output of a batch for comparisons.
inline std::vector<float> Numbers(std::span<const float> output) {
  return {output.begin(), output.end()};
}

inline std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Returns the bytes of a file of tests/golden/images.
inline std::string Picture(const std::string& name) {
  return ReadBytes(SourceFolder() + "/tests/golden/images/" + name);
}

// The code and text of the Error that `f` throws; the code is 0 if nothing is thrown.
struct Thrown {
  int code = 0;
  std::string text;
};
inline Thrown Catch(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {};
}

// Usage: EXPECT_THAT(Catch(...), Refuses(ErrorCode::kData, "part of the text"))
MATCHER_P2(Refuses, code, part,
           "an Error of that code whose text holds '" + std::string(part) + "'") {
  *result_listener << "code " << arg.code << ": " << arg.text;
  return arg.code == static_cast<int>(code) && arg.text.find(part) != std::string::npos &&
         arg.text.find('\n') == std::string::npos;
}

// Drops root's permission to write anywhere while the object exists.
class AsNobody {
 public:
  AsNobody() : was_(geteuid()) {
    if (was_ == 0 && seteuid(65534) != 0) throw std::runtime_error("seteuid failed");
  }
  ~AsNobody() {
    if (seteuid(was_) != 0) std::abort();
  }

 private:
  uid_t was_;
};

// Collects the lines that any thread logs while the object exists.
class LogLines : public google::LogSink {
 public:
  LogLines() { google::AddLogSink(this); }
  ~LogLines() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t length) override {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(message, length);
  }
  std::vector<std::string> Get() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace trainer
