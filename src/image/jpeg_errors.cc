#include "jpeg_errors.h"

namespace trainer {
namespace {

void Fail(j_common_ptr jpeg) {
  auto* const errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->text);
  std::longjmp(errors->back, 1);
}

void Note(j_common_ptr jpeg, int level) {
  if (level < 0) Fail(jpeg);
}

}  // namespace

jpeg_error_mgr* PrepareErrors(JpegErrors* errors) {
  jpeg_std_error(&errors->manager);
  errors->manager.error_exit = Fail;
  errors->manager.emit_message = Note;
  return &errors->manager;
}

bool CatchJpegError(JpegErrors* errors, void (*step)(void*), void* argument) {
  if (setjmp(errors->back) != 0) return false;
  step(argument);
  return true;
}

}  // namespace trainer
