#pragma once

namespace trainer {

// Threads that hang in a call of the system, which no one can end. They are left behind, and what
// they use must not be freed; a process that has some must end without running destructors.
void NoteThreadLeftBehind();
bool HasThreadsLeftBehind();

}  // namespace trainer
