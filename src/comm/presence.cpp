#include "comm/presence.h"

#include <fcntl.h>

namespace lockstep::comm {
namespace {

struct flock byte_of(int rank, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

Presence::Presence(std::shared_ptr<Segment> segment, int rank) : segment_(std::move(segment)) {
  struct flock lock = byte_of(rank, F_WRLCK);
  if (::fcntl(segment_->descriptor(), F_SETLK, &lock) != 0) {
    throw_errno("locking rank " + std::to_string(rank) + "'s byte of the control segment");
  }
}

Presence::Holder Presence::holder(int rank) const {
  struct flock lock = byte_of(rank, F_WRLCK);
  if (::fcntl(segment_->descriptor(), F_GETLK, &lock) != 0) {
    return {};  // cannot tell: the deadline will
  }
  return {lock.l_type != F_UNLCK, lock.l_type != F_UNLCK ? lock.l_pid : 0};
}

}  // namespace lockstep::comm
