// The engines that were compiled in, and which of them this machine can run.
#pragma once
#include "engine.hpp"

namespace tkmeans {

struct InstructionSet {
    const char* name;
    const Engine* engine;
    bool (*runs_here)();
};

// From the plainest to the widest. Every machine runs the first.
extern const InstructionSet instruction_sets[];
extern const int n_instruction_sets;

}  // namespace tkmeans
