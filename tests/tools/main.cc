#include <gtest/gtest.h>

// Replaces the weak main of tools/main.cc.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
