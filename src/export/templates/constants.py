MICRO_BATCH = @micro_batch@  # samples in one forward and backward pass on one GPU
MICRO_STEPS = @micro_steps@  # of these in one optimizer step  #? accumulate !remainder
#? remainder
# One optimizer step takes @accumulation@ micro-batches of @micro_batch@ samples on each GPU and one of @remainder@.
SIZES = [MICRO_BATCH] * @accumulation@ + [@remainder@]
MICRO_STEPS = len(SIZES)
#? end
WORLD_SIZE = @world_size@  # GPUs  #? distributed
SEQUENCE = @sequence@  # tokens in one sample; longer ones take more memory  #? sequence
WORKERS = 2  # processes that load data; they take no GPU memory, and are not of the plan

