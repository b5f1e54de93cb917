# cmake -DINPUT=<file> -DOUTPUT=<source.cc> -DNAME=<Function> -P EmbedFile.cmake
# Writes a source whose function trainer::<Function>() returns the file's bytes.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "#include <string_view>
namespace trainer {
std::string_view ${NAME}();
std::string_view ${NAME}() {
  static constexpr unsigned char kBytes[] = {${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}
}  // namespace trainer
")
