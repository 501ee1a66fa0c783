// Each kind of collective as one call that checks what it gives: for tests of what goes wrong in
// any of them.
#pragma once

#include "comm/fingerprint.h"
#include "lockstep/group.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {

// One collective with its algorithm; `send` stands for a message to the next and one from the
// previous rank.
struct Call {
  comm::Kind kind = comm::Kind::all_reduce;
  Algorithm algorithm = Algorithm::automatic;
  std::string text() const {
    return std::string(comm::name_of(kind)) + ", " + std::string(name_of(algorithm));
  }
};

inline constexpr std::array kEveryKind{comm::Kind::all_reduce, comm::Kind::reduce_scatter,
                                       comm::Kind::all_gather, comm::Kind::broadcast,
                                       comm::Kind::reduce,     comm::Kind::gather,
                                       comm::Kind::scatter,    comm::Kind::all_to_all,
                                       comm::Kind::send,       comm::Kind::barrier};

// The memory of one rank's calls: n elements in P equal blocks, P a divisor of n.
class Room {
 public:
  Room(int rank, int ranks, std::int64_t count)
      : rank_(rank),
        ranks_(ranks),
        whole_(static_cast<std::size_t>(count)),
        block_(static_cast<std::size_t>(count / ranks)),
        other_(static_cast<std::size_t>(count)) {}

  // Runs the call and throws where its result is wrong. Ranks differ, and so do rounds.
  void run(Group& group, const Call& call, int round) {
    fill(static_cast<float>(rank_ + 1 + round));
    enter(group, call, "step");
    require(call.kind, round);
  }

  // Runs it with other elements than the ranks' own: `values.count` of `values.dtype`.
  void enter(Group& group, const Call& call, std::string_view name) {
    enter(group, call, name, Span(std::span(whole_)));
  }
  void enter(Group& group, const Call& call, std::string_view name, Span whole) {
    const Span block(block_.data(), whole.count / ranks_, whole.dtype);
    const Span other(other_.data(), whole.count, whole.dtype);
    const CollectiveOptions moves{.name = name, .algorithm = call.algorithm};
    ReduceOptions adds;
    adds.name = name;
    adds.algorithm = call.algorithm;
    switch (call.kind) {
      case comm::Kind::all_reduce:
        return group.all_reduce(whole, adds).wait();
      case comm::Kind::reduce_scatter:
        return group.reduce_scatter(whole, block, adds).wait();
      case comm::Kind::all_gather:
        return group.all_gather(block, whole, moves).wait();
      case comm::Kind::broadcast:
        return group.broadcast(whole, 0, moves).wait();
      case comm::Kind::reduce:
        return group.reduce(whole, 0, adds).wait();
      case comm::Kind::gather:
        return group.gather(block, whole, 0, moves).wait();
      case comm::Kind::scatter:
        return group.scatter(whole, block, 0, moves).wait();
      case comm::Kind::all_to_all:
        return group.all_to_all(whole, other, moves).wait();
      case comm::Kind::send: {
        Work sent = group.send(whole, (rank_ + 1) % ranks_, name);
        group.recv(other, previous(), name).wait();
        return sent.wait();
      }
      case comm::Kind::barrier:
        return group.barrier(moves);
      default:
        throw std::logic_error("no such call");
    }
  }

  void fill(float value) {
    for (auto* values : {&whole_, &block_, &other_}) {
      std::ranges::fill(*values, value);
    }
  }
  bool holds_only(float value) const {
    return std::ranges::all_of(std::array{&whole_, &block_, &other_}, [value](const auto* values) {
      return std::ranges::count(*values, value) == std::ssize(*values);
    });
  }

 private:
  int previous() const { return (rank_ + ranks_ - 1) % ranks_; }

  void require(comm::Kind kind, int round) const {
    const auto sum = static_cast<float>(ranks_ * (ranks_ + 1) / 2 + ranks_ * round);
    const auto of_rank = [round](int rank) { return static_cast<float>(rank + 1 + round); };
    bool right = true;
    const auto blocks = [&](const std::vector<float>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        right = right && values[i] == of_rank(static_cast<int>(i / block_.size()));
      }
    };
    const auto all = [&](const std::vector<float>& values, float value) {
      right = right && std::ranges::count(values, value) == std::ssize(values);
    };
    switch (kind) {
      case comm::Kind::all_reduce:
        all(whole_, sum);
        break;
      case comm::Kind::reduce_scatter:
        all(block_, sum);
        break;
      case comm::Kind::all_gather:
        blocks(whole_);
        break;
      case comm::Kind::broadcast:
        all(whole_, of_rank(0));
        break;
      case comm::Kind::reduce:
        all(whole_, rank_ == 0 ? sum : of_rank(rank_));
        break;
      case comm::Kind::gather:
        rank_ == 0 ? blocks(whole_) : all(whole_, of_rank(rank_));
        break;
      case comm::Kind::scatter:
        all(block_, of_rank(0));
        break;
      case comm::Kind::all_to_all:
        blocks(other_);
        break;
      case comm::Kind::send:
        all(other_, of_rank(previous()));
        break;
      default:
        break;
    }
    if (!right) {
      throw std::runtime_error("wrong values after " + std::string(comm::name_of(kind)));
    }
  }

  int rank_;
  int ranks_;
  std::vector<float> whole_;
  std::vector<float> block_;
  std::vector<float> other_;
};

}  // namespace lockstep::test
