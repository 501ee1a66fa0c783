#include "machine/command_line.h"

#include <sstream>

namespace lockstep::machine {

std::string command_line(const std::string& program, const FileTree& files) {
  std::istringstream words(files.text("/proc/self/cmdline").value_or(""));
  std::string text = program;
  std::string word;
  std::getline(words, word, '\0');
  while (std::getline(words, word, '\0')) {
    text += " " + word;
  }
  return text;
}

}  // namespace lockstep::machine
