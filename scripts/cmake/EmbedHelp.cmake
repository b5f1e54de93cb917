# cmake -DFOLDER=<folder> -DOUTPUT=<source.cc> -P EmbedHelp.cmake
# Writes a source whose function trainer::HelpFile(name) returns the text of <folder>/<name>.txt, or
# an empty text if that file is missing. The name of <folder>/dataset/pack.txt is "dataset_pack".
file(GLOB_RECURSE pages RELATIVE ${FOLDER} ${FOLDER}/*.txt)
set(cases "")
foreach(page ${pages})
  string(REGEX REPLACE "[.]txt$" "" name ${page})
  string(REPLACE "/" "_" name ${name})
  file(READ ${FOLDER}/${page} text)
  string(APPEND cases "  if (name == \"${name}\") return R\"~(${text})~\";\n")
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>
namespace trainer {
std::string_view HelpFile(std::string_view name);
std::string_view HelpFile(std::string_view name) {
${cases}  return {};
}
}  // namespace trainer
")
