# install() rules: Lockstep::comm and Lockstep::plan without LibTorch, Lockstep::lockstep with it.
