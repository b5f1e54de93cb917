#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "import/constant.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/random_access_file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/tensor/dtype.h"

namespace trainer {
namespace {

using onnx::TensorProto;

// Reads one tensor, and keeps its name and path for messages.
class TensorReader {
 public:
  TensorReader(const TensorProto& tensor, const std::string& path, const std::string& what)
      : tensor_(tensor), path_(path), what_(what) {}

  Constant Read() {
    const Dims dims(tensor_.dims().begin(), tensor_.dims().end());
    if (!AreValidDims(dims)) {
      Refuse(Join("its shape ", DimsText(dims), " is not possible; the file is damaged"));
    }
    constant_.dims = dims;
    count_ = static_cast<uint64_t>(CountOf(dims));
    if (tensor_.data_location() == TensorProto::EXTERNAL) {
      const std::string bytes = ReadExternal();
      ReadRaw(bytes);
    } else if (tensor_.has_raw_data()) {
      ReadRaw(tensor_.raw_data());
    } else {
      ReadFields();
    }
    return std::move(constant_);
  }

 private:
  [[noreturn]] void Refuse(const std::string& why) const {
    throw Error(ErrorCode::kData, {path_}, Join(what_, ": ", why));
  }
  [[noreturn]] void RefuseType() const {
    Refuse(Join("its numbers have type ", tensor_.data_type(),
                " of the format; only floats, integers and booleans can be read: convert the "
                "model to floats"));
  }
  // Throws kData unless the tensor has as many numbers as its shape.
  void RequireCount(uint64_t count) const {
    if (count == count_) return;
    Refuse(Join("it has ", count, " numbers, but its shape is ", DimsText(constant_.dims),
                "; the file is damaged"));
  }

  // Appends all elements of type T of the bytes, each converted.
  template <class T, class Number, class Convert>
  void Widen(std::string_view bytes, const Convert& convert, std::vector<Number>* to) const {
    if (bytes.size() % sizeof(T) != 0 || bytes.size() / sizeof(T) != count_) {
      Refuse(Join("it has ", bytes.size(), " bytes of ", sizeof(T), "-byte numbers, but its shape ",
                  DimsText(constant_.dims), " has ", count_, " numbers; the file is damaged"));
    }
    to->resize(count_);
    for (size_t i = 0; i < to->size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      (*to)[i] = convert(element);
    }
  }
  template <class T>
  void ReadIntegers(std::string_view bytes) {
    constant_.is_float = false;
    Widen<T>(
        bytes, [](T x) { return static_cast<int64_t>(x); }, &constant_.ints);
  }
  template <class T, class Convert>
  void ReadNumbers(std::string_view bytes, const Convert& convert) {
    Widen<T>(bytes, convert, &constant_.floats);
  }

  // Reads little-endian numbers of the tensor's type.
  void ReadRaw(std::string_view bytes) {
    switch (tensor_.data_type()) {
      case TensorProto::FLOAT:
        return ReadNumbers<float>(bytes, [](float x) { return x; });
      case TensorProto::DOUBLE:
        return ReadNumbers<double>(bytes, [](double x) { return static_cast<float>(x); });
      case TensorProto::FLOAT16:
        return ReadNumbers<Float16>(bytes, [](Float16 x) { return Load(x); });
      case TensorProto::BFLOAT16:
        return ReadNumbers<BFloat16>(bytes, [](BFloat16 x) { return Load(x); });
      case TensorProto::INT64:
        return ReadIntegers<int64_t>(bytes);
      case TensorProto::INT32:
        return ReadIntegers<int32_t>(bytes);
      case TensorProto::INT16:
        return ReadIntegers<int16_t>(bytes);
      case TensorProto::INT8:
        return ReadIntegers<int8_t>(bytes);
      case TensorProto::UINT64:
        return ReadIntegers<uint64_t>(bytes);
      case TensorProto::UINT32:
        return ReadIntegers<uint32_t>(bytes);
      case TensorProto::UINT16:
        return ReadIntegers<uint16_t>(bytes);
      case TensorProto::UINT8:
      case TensorProto::BOOL:
        return ReadIntegers<uint8_t>(bytes);
      default:
        RefuseType();
    }
  }

  // Copies a repeated field of the message.
  template <class Field, class Number, class Convert>
  void Copy(const Field& field, const Convert& convert, std::vector<Number>* to) {
    RequireCount(static_cast<uint64_t>(field.size()));
    to->reserve(count_);
    for (const auto element : field) to->push_back(convert(element));
  }
  void ReadFields() {
    const auto bits = [](int32_t x) { return static_cast<uint16_t>(x); };
    const auto whole = [](auto x) { return static_cast<int64_t>(x); };
    constant_.is_float = false;
    switch (tensor_.data_type()) {
      case TensorProto::INT64:
        return Copy(tensor_.int64_data(), whole, &constant_.ints);
      case TensorProto::UINT64:
      case TensorProto::UINT32:
        return Copy(tensor_.uint64_data(), whole, &constant_.ints);
      case TensorProto::INT32:
      case TensorProto::INT16:
      case TensorProto::INT8:
      case TensorProto::UINT16:
      case TensorProto::UINT8:
      case TensorProto::BOOL:
        return Copy(tensor_.int32_data(), whole, &constant_.ints);
      default:
        break;
    }
    constant_.is_float = true;
    std::vector<float>* const to = &constant_.floats;
    switch (tensor_.data_type()) {
      case TensorProto::FLOAT:
        return Copy(
            tensor_.float_data(), [](float x) { return x; }, to);
      case TensorProto::DOUBLE:
        return Copy(
            tensor_.double_data(), [](double x) { return static_cast<float>(x); }, to);
      case TensorProto::FLOAT16:
        return Copy(
            tensor_.int32_data(), [&](int32_t x) { return Load(Float16{bits(x)}); }, to);
      case TensorProto::BFLOAT16:
        return Copy(
            tensor_.int32_data(), [&](int32_t x) { return Load(BFloat16{bits(x)}); }, to);
      default:
        RefuseType();
    }
  }

  // Returns the value of a property of external_data; "" if there is none.
  std::string Property(std::string_view key) const {
    for (const auto& entry : tensor_.external_data()) {
      if (entry.key() == key) return entry.value();
    }
    return "";
  }
  // Returns a number of bytes of external_data, or nothing if the property is missing.
  std::optional<uint64_t> Bytes(const char* key) const {
    const std::string text = Property(key);
    if (text.empty()) return std::nullopt;
    const std::optional<uint64_t> value = ParseNumber<uint64_t>(text);
    if (!value) {
      Refuse(Join("its external data has the ", key, " '", EscapeControl(text),
                  "', which is not a number of bytes; the file is damaged"));
    }
    return value;
  }

  // Returns the bytes of the external file. A model may come from anywhere, so it may not name
  // files outside its own folder.
  std::string ReadExternal() const {
    const std::string location = Property("location");
    bool leaves = location.empty() || location.front() == '/';
    for (const std::string& part : SplitList(location, '/')) leaves = leaves || part == "..";
    if (leaves || location.find('\0') != std::string::npos) {
      Refuse(Join("its numbers are in '", EscapeControl(location),
                  "'; external data must be in the folder of the model: move the file there and "
                  "save the model again"));
    }
    const std::string external = JoinPath(FolderOf(path_), location);
    if (IsMissing(external)) {
      throw Error(ErrorCode::kNoInput, {external},
                  EscapeControl(Join("the file is missing, which has the weights of ",
                                     FileNameOf(path_), "; copy it next to the model")));
    }
    const RandomAccessFile file(external);
    const uint64_t offset = Bytes("offset").value_or(0);
    const uint64_t left = offset <= file.bytes() ? file.bytes() - offset : 0;
    const uint64_t length = Bytes("length").value_or(left);
    if (offset > file.bytes() || length > left) {
      Refuse(Join("its ", length, " bytes begin at byte ", offset, " of '", file.path(),
                  "', which has only ", file.bytes(),
                  " bytes; the file is truncated or belongs to another model"));
    }
    if (length / 8 > count_) {  // no type has more than 8 bytes
      Refuse(Join("it has ", length, " bytes, but its shape is ", DimsText(constant_.dims),
                  "; the file is damaged"));
    }
    std::string bytes(length, '\0');
    if (file.Read(offset, length, bytes.data()) != length) {
      Refuse(Join("'", file.path(), "' became shorter while it was read"));
    }
    return bytes;
  }

  const TensorProto& tensor_;
  const std::string &path_, &what_;
  Constant constant_;
  uint64_t count_ = 0;
};

}  // namespace

Constant ReadTensor(const TensorProto& tensor, const std::string& path, const std::string& what) {
  return TensorReader(tensor, path, what).Read();
}

}  // namespace trainer
