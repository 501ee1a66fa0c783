// Plays the schedules of all ranks in one thread, with texts for values: what every rank ends with
// says which leaves were added, and in which order.
#pragma once

#include "base/range.h"
#include "comm/schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

// What one rank sent and received: blocks, by form; rounds with a message, and additions.
struct Played {
  std::array<int, 3> sent = {};
  std::array<int, 3> received = {};
  int rounds = 0;
  std::map<int, std::string> results = {};  // by block
};

inline std::string tree_text(std::span<const std::string> leaves) {
  if (leaves.size() == 1) {
    return leaves[0];
  }
  const auto mid = static_cast<std::size_t>(tree_split(static_cast<std::int64_t>(leaves.size())));
  return "(" + tree_text(leaves.first(mid)) + "+" + tree_text(leaves.subspan(mid)) + ")";
}

// The summation tree over the leaves of all ranks.
inline std::string tree_of_ranks(int ranks) {
  std::vector<std::string> leaves;
  for (int r = 0; r < ranks; ++r) {
    leaves.push_back(std::to_string(r));
  }
  return tree_text(leaves);
}

class Playing {
 public:
  // `problem`'s rank does not matter.
  Playing(Algorithm algorithm, comm::Problem problem) : problem_(problem) {
    for (int r = 0; r < problem.ranks; ++r) {
      problem.rank = r;
      schedules_.push_back(comm::schedule_of(algorithm, problem));
      states_.push_back(initial(r));
    }
  }

  // Throws where a rank sends what it has not, receives what was not sent, or waits for ever.
  std::vector<Played> play() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int r = 0; r < problem_.ranks; ++r) {
        while (step(r)) {
          moved = true;
        }
      }
    }
    std::vector<Played> all;
    for (int r = 0; r < problem_.ranks; ++r) {
      State& state = states_[at(r)];
      require(state.round == schedules_[at(r)].size(), r, "waits for ever");
      for (const auto& [key, value] : state.values) {
        if (key.second == comm::Form::result) {
          state.played.results[key.first] = value;
        }
      }
      all.push_back(state.played);
    }
    for (const auto& [ends, line] : lines_) {
      require(line.empty(), ends.second, "was sent what it never received");
    }
    return all;
  }

 private:
  using Key = std::pair<int, comm::Form>;  // block and form
  struct Message {
    comm::Form form;
    std::vector<int> blocks;
    std::vector<std::string> values;
  };
  struct State {
    std::map<Key, std::string> values = {};
    std::map<std::pair<int, int>, std::string> inbox = {};  // by peer and block
    std::size_t round = 0;
    bool posted = false;
    Played played = {};
  };

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  static void require(bool right, int rank, const std::string& what) {
    if (!right) {
      throw std::runtime_error("rank " + std::to_string(rank) + " " + what);
    }
  }

  State initial(int rank) const {
    State state;
    using comm::Form;
    using comm::Kind;
    for (int block = 0; block < problem_.ranks; ++block) {
      const std::string value = "v" + std::to_string(block);
      switch (problem_.kind) {
        case Kind::all_reduce:
        case Kind::reduce_scatter:
        case Kind::reduce:
          state.values[{block, Form::leaf}] = std::to_string(rank);
          break;
        case Kind::all_to_all:
          state.values[{block, Form::leaf}] = std::to_string(rank) + "->" + std::to_string(block);
          break;
        case Kind::broadcast:
        case Kind::scatter:
          if (rank == problem_.root) {
            state.values[{block, Form::result}] = value;
          }
          break;
        default:
          if (rank == block) {
            state.values[{block, Form::result}] = value;
          }
      }
    }
    return state;
  }

  void post(int rank, const comm::Round& round) {
    State& state = states_[at(rank)];
    for (const comm::Transfer& transfer : round.sends) {
      Message message{transfer.form, transfer.blocks, {}};
      for (const int block : transfer.blocks) {
        const auto found = state.values.find({block, transfer.form});
        require(found != state.values.end(), rank,
                "sends block " + std::to_string(block) + " in a form that it does not hold");
        message.values.push_back(found->second);
        ++state.played.sent.at(static_cast<std::size_t>(transfer.form));
      }
      lines_[{rank, transfer.peer}].push_back(std::move(message));
    }
    state.played.rounds += round.sends.empty() && round.receives.empty() ? 0 : 1;
  }

  bool all_there(int rank, const comm::Round& round) {
    std::map<int, std::size_t> wanted;
    for (const comm::Transfer& transfer : round.receives) {
      if (lines_[{transfer.peer, rank}].size() < ++wanted[transfer.peer]) {
        return false;
      }
    }
    return true;
  }

  void receive(int rank, const comm::Round& round) {
    State& state = states_[at(rank)];
    for (const comm::Transfer& transfer : round.receives) {
      auto& line = lines_[{transfer.peer, rank}];
      const Message message = std::move(line.front());
      line.pop_front();
      // In all_to_all the sender names a block by its receiver, the receiver by its sender.
      const std::vector<int> named =
          problem_.kind == comm::Kind::all_to_all ? std::vector<int>{rank} : transfer.blocks;
      require(message.form == transfer.form && message.blocks == named, rank,
              "receives other blocks than rank " + std::to_string(transfer.peer) + " sent");
      for (std::size_t i = 0; i < message.blocks.size(); ++i) {
        const int block = transfer.blocks[i];
        if (transfer.form == comm::Form::result) {
          state.values[{block, transfer.form}] = message.values[i];
        } else {
          state.inbox[{transfer.peer, block}] = message.values[i];
        }
        ++state.played.received.at(static_cast<std::size_t>(transfer.form));
      }
    }
  }

  void add(int rank, const comm::Round& round) {
    State& state = states_[at(rank)];
    for (const comm::Addition& addition : round.additions) {
      for (const int block : addition.blocks) {
        std::vector<std::string> operands;
        for (const comm::Addend& addend : addition.addends) {
          operands.push_back(addend.rank == rank ? state.values.at({block, addend.form})
                                                 : state.inbox.at({addend.rank, block}));
        }
        state.values[{block, addition.into}] = tree_text(operands);
      }
    }
    for (const comm::Transfer& transfer : round.copies) {
      for (const int block : transfer.blocks) {
        state.values[{block, comm::Form::result}] = state.inbox.at({transfer.peer, block});
      }
    }
  }

  // Goes on by half a round where that can be.
  bool step(int rank) {
    State& state = states_[at(rank)];
    if (state.round == schedules_[at(rank)].size()) {
      return false;
    }
    const comm::Round& round = schedules_[at(rank)][state.round];
    if (!state.posted) {
      post(rank, round);
      state.posted = true;
      return true;
    }
    if (!all_there(rank, round)) {
      return false;
    }
    receive(rank, round);
    add(rank, round);
    state.posted = false;
    ++state.round;
    return true;
  }

  comm::Problem problem_;
  std::vector<comm::Schedule> schedules_;
  std::vector<State> states_;
  std::map<std::pair<int, int>, std::deque<Message>> lines_;
};

inline std::vector<Played> play(Algorithm algorithm, const comm::Problem& problem) {
  return Playing(algorithm, problem).play();
}

// Whether rank r must end with block b.
inline bool must_have(const comm::Problem& problem, int rank, int block) {
  switch (problem.kind) {
    case comm::Kind::reduce_scatter:
    case comm::Kind::scatter:
      return rank == block;
    case comm::Kind::reduce:
    case comm::Kind::gather:
      return rank == problem.root;
    case comm::Kind::all_to_all:
      return rank != block;  // its own needs no schedule
    default:
      return true;
  }
}

// Every rank ends with what the collective is to give it; `sum_of(block)` is that of a reduction.
template <class SumOf>
void expect_results(const std::vector<Played>& played, const comm::Problem& problem, SumOf sum_of) {
  using comm::Kind;
  const bool reduces = problem.kind == Kind::all_reduce || problem.kind == Kind::reduce ||
                       problem.kind == Kind::reduce_scatter;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const auto& results = played[static_cast<std::size_t>(rank)].results;
    for (int block = 0; block < problem.ranks; ++block) {
      if (!must_have(problem, rank, block)) {
        continue;
      }
      const std::string expected = reduces ? sum_of(block)
                                   : problem.kind == Kind::all_to_all
                                       ? std::to_string(block) + "->" + std::to_string(rank)
                                       : "v" + std::to_string(block);
      const auto found = results.find(block);
      ASSERT_NE(found, results.end()) << "rank " << rank << " lacks block " << block;
      ASSERT_EQ(found->second, expected) << "rank " << rank << " block " << block;
    }
  }
}

// The same, for an algorithm that adds in the tree; every root in turn.
inline void expect_tree(Algorithm algorithm, comm::Problem problem) {
  const std::string tree = tree_of_ranks(problem.ranks);
  for (problem.root = 0; problem.root < problem.ranks; ++problem.root) {
    SCOPED_TRACE(std::string(name_of(problem.kind)) + " by " + std::string(name_of(algorithm)) +
                 " on " + std::to_string(problem.ranks) + " ranks, root " +
                 std::to_string(problem.root));
    expect_results(play(algorithm, problem), problem, [&](int) { return tree; });
  }
}

constexpr std::size_t kLeaf = static_cast<std::size_t>(comm::Form::leaf);
constexpr std::size_t kPartial = static_cast<std::size_t>(comm::Form::partial);
constexpr std::size_t kResult = static_cast<std::size_t>(comm::Form::result);

}  // namespace lockstep::test
