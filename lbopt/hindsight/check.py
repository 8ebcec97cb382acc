from lbopt.hindsight.certificate import digest
