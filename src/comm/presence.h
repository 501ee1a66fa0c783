// Who is still there: each process of a group holds a lock on its rank's byte of the control
// segment, and the kernel drops it when the process dies, however it dies.
#pragma once

#include "comm/segment.h"

#include <memory>

namespace lockstep::comm {

class Presence {
 public:
  // Takes `rank`'s lock. A POSIX record lock, not an open-file-description lock: a forked child
  // must not keep its dead parent alive. Throws SystemError.
  Presence(std::shared_ptr<Segment> segment, int rank);

  // Whether the process of another rank lives. Undefined for one's own rank.
  bool alive(int rank) const;

 private:
  std::shared_ptr<Segment> segment_;
};

}  // namespace lockstep::comm
