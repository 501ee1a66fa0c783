// Scalars for TensorBoard: a file of TFRecords, each a protocol buffer `Event` (TensorFlow's
// core/util/event.proto, framework/summary.proto). Written by hand: five fields do not make a
// dependency.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

struct Scalar {
  std::string_view tag;  // "train/loss"
  double value = 0;      // kept as a float, which is all that the format has
};

class EventFile {
 public:
  // Creates folder/events.out.tfevents.SECONDS.HOST.PROCESS.N, beside those of earlier runs.
  // TensorBoard then forgets what they say about `first_step` and later steps. Throws SystemError.
  EventFile(const std::string& folder, std::int64_t first_step);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  const std::string& path() const { return path_; }
  // The values of a step, as one event. It is with the kernel on return: a process killed then
  // loses nothing. Throws SystemError.
  void add(std::int64_t step, std::span<const Scalar> scalars);

 private:
  void write(std::string_view event);

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace lockstep::train
