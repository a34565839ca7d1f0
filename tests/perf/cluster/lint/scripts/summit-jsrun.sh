#!/bin/bash
# Put together from NERSC/sc22-dl-tutorial (2022-11-08): the bsub options of README_summit.md as directives, the jsrun options
# of submit_summit.sh, and the variable that its temporary files were named after.
#BSUB -P trn001
#BSUB -W 0:30
#BSUB -J sc22.tut
#BSUB -nnodes 1
#BSUB -alloc_flags "gpumps smt4"
jsrun -n1 -a6 -c42 -g6 -r1 --smpiargs="-disable_gpu_hooks" --bind=proportional-packed:7 --launch_distribution=packed \
    bash -c "python train.py --config=short_sm --num_data_workers 7 > /tmp/out_${SLURM_JOBID}"
